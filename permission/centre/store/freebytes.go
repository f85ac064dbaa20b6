package store

import "context"

// FreeBytes returns how many bytes SQLite can still write: the free bytes of the volume, and those of deleted rows in the
// file, which does not shrink.
func (s *Store) FreeBytes(ctx context.Context) (uint64, error) {
	volume, err := s.volume()
	if err != nil {
		return 0, err
	}
	file, err := s.View(ctx).freeBytes()
	return volume.Bavail*uint64(volume.Bsize) + uint64(file), err //nolint:gosec // neither is negative
}

// freeBytes returns the size of the unused pages of the file.
func (v View) freeBytes() (int, error) {
	return v.count("SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size")
}
