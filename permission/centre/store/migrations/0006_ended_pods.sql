-- Pods that have ended: no application of them begins an attempt.
CREATE TABLE ended_pods (
  cluster TEXT   NOT NULL,
  pod_uid TEXT   NOT NULL,
  ended   BIGINT NOT NULL,
  PRIMARY KEY (cluster, pod_uid)
);
CREATE INDEX ended_pods_ended ON ended_pods (ended);
