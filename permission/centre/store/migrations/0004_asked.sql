-- When the last attempt of an application began; 0 while that is its first.
ALTER TABLE applications ADD COLUMN asked BIGINT NOT NULL DEFAULT 0;
