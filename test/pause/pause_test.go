package pause_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/breakwater-dev/breakwater/test/pause"
)

// counterFile is the environment variable with the file in which the child of a test counts.
const counterFile = "COUNTER_FILE"

// threads is the number of threads of the child: more than the machine runs at a time.
var threads = 4 * runtime.NumCPU()

func TestMain(m *testing.M) {
	if file, ok := os.LookupEnv(counterFile); ok {
		count(file)
	}
	os.Exit(m.Run())
}

// count counts in a file, with all threads, until the process is killed or its parent has ended,
// which closes its input.
func count(file string) {
	counter, err := share(file)
	if err != nil {
		panic(err)
	}
	for range threads {
		go func() {
			for {
				counter.Add(1)
			}
		}()
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// share maps a file as a counter that several processes see.
func share(file string) (*atomic.Int64, error) {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	raw, err := syscall.Mmap(int(f.Fd()), 0, int(unsafe.Sizeof(atomic.Int64{})), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return (*atomic.Int64)(unsafe.Pointer(&raw[0])), nil
}

func TestNoThreadOfAPausedProcessRuns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "counter")
	if err := os.WriteFile(file, make([]byte, unsafe.Sizeof(atomic.Int64{})), 0o600); err != nil {
		t.Fatal(err)
	}
	counter, err := share(file)
	if err != nil {
		t.Fatal(err)
	}
	// Other tests run at the same time: nice lets them go first.
	child := exec.CommandContext(t.Context(), "nice", "-n", "19", os.Args[0])
	child.Env = append(os.Environ(), counterFile+"="+file, "GOMAXPROCS="+strconv.Itoa(threads))
	if _, err := child.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	})
	for range 20 {
		for before := counter.Load(); counter.Load() == before; {
			time.Sleep(time.Millisecond)
		}
		if err := pause.Process(child.Process.Pid); err != nil {
			t.Fatal(err)
		}
		paused := counter.Load()
		time.Sleep(20 * time.Millisecond)
		if n := counter.Load() - paused; n != 0 {
			t.Fatalf("the process counted %d more after it was paused", n)
		}
		if err := pause.Resume(child.Process.Pid); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAProcessThatHasEndedIsNoError(t *testing.T) {
	child := exec.CommandContext(t.Context(), "true")
	if err := child.Run(); err != nil {
		t.Fatal(err)
	}
	if err := pause.Process(child.Process.Pid); err != nil {
		t.Errorf("pause: %v", err)
	}
	if err := pause.Resume(child.Process.Pid); err != nil {
		t.Errorf("resume: %v", err)
	}
}
