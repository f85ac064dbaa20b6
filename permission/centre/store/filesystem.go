package store

import (
	"fmt"
	"path/filepath"
	"syscall"
)

// NetworkFilesystem returns the name of the file system of the SQLite database if several nodes can
// mount it at the same time, otherwise "". Two nodes that write a database in WAL mode can corrupt it.
func (s *Store) NetworkFilesystem() (string, error) {
	volume, err := s.volume()
	if err != nil {
		return "", err
	}
	return networkFilesystem(uint32(volume.Type)), nil
}

// volume returns the state of the file system of the SQLite database.
func (s *Store) volume() (volume syscall.Statfs_t, err error) {
	if err = syscall.Statfs(filepath.Dir(s.path), &volume); err != nil {
		err = fmt.Errorf("read the file system of the store: %w", err)
	}
	return volume, err
}

// networkFilesystem returns the name of a type of statfs(2) that is a network file system.
func networkFilesystem(kind uint32) string {
	switch kind {
	case 0x6969:
		return "nfs"
	case 0x517b:
		return "smb"
	case 0xfe534d42:
		return "smb2"
	case 0xff534d42:
		return "cifs"
	case 0xc36400:
		return "ceph"
	case 0x1021997:
		return "9p"
	case 0x65735546:
		return "fuse"
	default:
		return ""
	}
}
