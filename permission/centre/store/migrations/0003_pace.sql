-- When the next call to a provider may be made, in microseconds.
CREATE TABLE pace (
  provider TEXT   PRIMARY KEY,
  next     BIGINT NOT NULL
);
