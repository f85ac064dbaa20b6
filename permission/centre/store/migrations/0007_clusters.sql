-- The reports of existing pods of a cluster. uid is the cluster that has the name. held is
-- the number of unconfirmed applications (Go: Unconfirmed).
CREATE TABLE clusters (
  name            TEXT    PRIMARY KEY,
  uid             TEXT    NOT NULL,
  reported        BIGINT  NOT NULL,
  held            INTEGER NOT NULL,
  confirmed       INTEGER NOT NULL,
  confirmed_until BIGINT  NOT NULL
);
