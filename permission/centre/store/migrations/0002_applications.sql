-- going is 1 when the revocation was requested (Go: RevokeRequested); 0004 adds asked
-- (AttemptBegan).
CREATE TABLE applications (
  id        TEXT    PRIMARY KEY,
  cluster   TEXT    NOT NULL,
  namespace TEXT    NOT NULL,
  pod       TEXT    NOT NULL,
  pod_uid   TEXT    NOT NULL,
  set_name  TEXT    NOT NULL,
  request   TEXT    NOT NULL,
  state     TEXT    NOT NULL,
  reason    TEXT    NOT NULL,
  message   TEXT    NOT NULL,
  attempt   INTEGER NOT NULL,
  going     INTEGER NOT NULL,
  created   BIGINT  NOT NULL,
  updated   BIGINT  NOT NULL,
  version   BIGINT  NOT NULL
);
CREATE INDEX applications_pod ON applications (cluster, pod_uid);
CREATE INDEX applications_state ON applications (state);
CREATE INDEX applications_updated ON applications (updated);

CREATE TABLE application_ips (
  application TEXT NOT NULL,
  ip          TEXT NOT NULL,
  PRIMARY KEY (application, ip)
);
CREATE INDEX application_ips_ip ON application_ips (ip);

-- One permission of one application, and the work on it. 0005 removes step, job and
-- lease_until. Until then: step is the number of the current job, and only that job may
-- act; after lease_until, no process can still be in the call. The key of the call is
-- stored with lease_until, before the call. Columns with another name in Go: lease (RunID),
-- keys (KeysUsed) and touched (MaybeGranted).
CREATE TABLE grants (
  application TEXT    NOT NULL,
  ordinal     INTEGER NOT NULL,
  permission  TEXT    NOT NULL,
  provider    TEXT    NOT NULL,
  subject     TEXT    NOT NULL,
  owner       TEXT    NOT NULL,
  parameters  TEXT    NOT NULL,
  state       TEXT    NOT NULL,
  reason      TEXT    NOT NULL,
  message     TEXT    NOT NULL,
  calls       INTEGER NOT NULL,
  failures    INTEGER NOT NULL,
  since       BIGINT  NOT NULL,
  began       BIGINT  NOT NULL,
  next_try    BIGINT  NOT NULL,
  step        BIGINT  NOT NULL,
  job         BIGINT  NOT NULL,
  due         BIGINT  NOT NULL,
  lease       TEXT    NOT NULL,
  lease_until BIGINT  NOT NULL,
  call_key    TEXT    NOT NULL,
  keys        INTEGER NOT NULL,
  touched     INTEGER NOT NULL,
  pending     INTEGER NOT NULL,
  kept        TEXT    NOT NULL,
  PRIMARY KEY (application, ordinal)
);
CREATE INDEX grants_provider ON grants (provider, state);
CREATE INDEX grants_permission ON grants (permission, state);
CREATE INDEX grants_due ON grants (due);
CREATE INDEX grants_lease ON grants (lease_until);

-- The addresses that a grant is for: the pod's, or its node's.
CREATE TABLE grant_ips (
  application TEXT    NOT NULL,
  ordinal     INTEGER NOT NULL,
  ip          TEXT    NOT NULL,
  PRIMARY KEY (application, ordinal, ip)
);
CREATE INDEX grant_ips_ip ON grant_ips (ip);

CREATE TABLE history (
  id          {{serial}},
  application TEXT    NOT NULL,
  time        BIGINT  NOT NULL,
  permission  TEXT    NOT NULL,
  state_from  TEXT    NOT NULL,
  state_to    TEXT    NOT NULL,
  attempt     INTEGER NOT NULL,
  reason      TEXT    NOT NULL,
  message     TEXT    NOT NULL,
  who         TEXT    NOT NULL
);
CREATE INDEX history_application ON history (application, id);
