-- The name of the permission, or the user of a database: whether a revocation removes another grant depends on its request.
ALTER TABLE grants DROP COLUMN subject;
