CREATE TABLE objects (
  kind        TEXT   NOT NULL,
  name        TEXT   NOT NULL,
  owner       TEXT   NOT NULL,
  description TEXT   NOT NULL,
  body        TEXT   NOT NULL,
  version     BIGINT NOT NULL,
  created     BIGINT NOT NULL,
  updated     BIGINT NOT NULL,
  PRIMARY KEY (kind, name)
);

-- Which object needs which: a set its permissions, a permission its provider.
CREATE TABLE links (
  kind      TEXT NOT NULL,
  name      TEXT NOT NULL,
  to_kind   TEXT NOT NULL,
  to_name   TEXT NOT NULL,
  PRIMARY KEY (kind, name, to_kind, to_name)
);
CREATE INDEX links_to ON links (to_kind, to_name);

CREATE TABLE audit (
  id     {{serial}},
  time   BIGINT NOT NULL,
  who    TEXT   NOT NULL,
  verb   TEXT   NOT NULL,
  kind   TEXT   NOT NULL,
  name   TEXT   NOT NULL,
  before TEXT   NOT NULL,
  after  TEXT   NOT NULL
);
CREATE INDEX audit_object ON audit (kind, name);
