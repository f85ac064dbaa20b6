package store

import "context"

// walReserve is how many free bytes of the volume SQLite needs to write at all, for its write-ahead log: 4 MiB, and more
// during an export.
const walReserve = 16 << 20

// FreeBytes returns how many bytes SQLite can still write.
func (s *Store) FreeBytes(ctx context.Context) (uint64, error) {
	volume, err := s.volume()
	if err != nil {
		return 0, err
	}
	file, err := s.View(ctx).freeBytes()
	return writableBytes(volume.Bavail*uint64(volume.Bsize), uint64(file)), err //nolint:gosec // neither is negative
}

// writableBytes adds the free bytes of the volume, and those of deleted rows in the file, which does not shrink.
func writableBytes(volume, file uint64) uint64 {
	if volume < walReserve {
		return volume
	}
	return volume + file
}

// freeBytes returns the size of the unused pages of the file.
func (v View) freeBytes() (int, error) {
	return v.count("SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size")
}
