package store

import "testing"

// The types are those of linux/magic.h.
func TestNetworkFilesystemsAreRecognized(t *testing.T) {
	for kind, want := range map[uint32]string{
		0x6969: "nfs", 0x517b: "smb", 0xfe534d42: "smb2", 0xff534d42: "cifs", 0xc36400: "ceph", 0x1021997: "9p", 0x65735546: "fuse",
		0xef53: "", 0x58465342: "", 0x9123683e: "", 0x01021994: "", // ext4, xfs, btrfs, tmpfs
	} {
		if got := networkFilesystem(kind); got != want {
			t.Errorf("%#x is %q, want %q", kind, got, want)
		}
	}
	if _, err := open(t).NetworkFilesystem(); err != nil {
		t.Error(err)
	}
}
