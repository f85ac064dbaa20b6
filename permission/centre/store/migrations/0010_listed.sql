-- When a report last listed the pod of an application that was Revoked; 0 if none did.
ALTER TABLE applications ADD COLUMN listed BIGINT NOT NULL DEFAULT 0;
