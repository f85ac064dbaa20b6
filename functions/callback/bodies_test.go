package callback

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
)

func TestABodyWaitsWhileCompleteOnesTakeTheMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBodies(firstBuffer)
		_, discard, err := readAll(b, strings.NewReader("complete"))
		if err != nil {
			t.Fatal(err)
		}
		second := make(chan error, 1)
		go func() {
			_, discard, err := readAll(b, strings.NewReader("another"))
			discard()
			second <- err
		}()
		synctest.Wait()
		select {
		case err := <-second:
			t.Fatalf("the read of the second ended while the first took the memory: %v", err)
		default:
		}
		discard()
		if err := <-second; err != nil {
			t.Errorf("the second after the first was discarded: %v", err)
		}
		if b.reserved != 0 || b.complete != 0 || b.droppedBytes != 0 || len(b.arriving) != 0 {
			t.Errorf("after all: reserved %d, complete %d, dropped %d, arriving %d", b.reserved, b.complete, b.droppedBytes, len(b.arriving))
		}
	})
}

func TestAWaitingBodyIsDroppedForASmallerOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBodies(4 * firstBuffer)
		if _, _, err := readAll(b, strings.NewReader("complete")); err != nil {
			t.Fatal(err)
		}
		large := make(chan error, 1)
		go func() {
			_, _, err := readAll(b, strings.NewReader(strings.Repeat("x", 2*firstBuffer+1)))
			large <- err
		}()
		synctest.Wait()
		if len(large) != 0 {
			t.Fatalf("the large body did not wait: %v", <-large)
		}
		for range 2 {
			if _, _, err := readAll(b, strings.NewReader("small")); err != nil {
				t.Errorf("a small body while a large one waits: %v", err)
			}
		}
		if err := <-large; !errors.Is(err, errBusy) {
			t.Errorf("the large body: %v, want %v", err, errBusy)
		}
	})
}

func TestAnotherBodyOfTheSameSizeIsNotDroppedWhileCompleteOnesTakeTheMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBodies(2 * firstBuffer)
		_, discard, err := readAll(b, strings.NewReader("complete"))
		if err != nil {
			t.Fatal(err)
		}
		arriving, third := make(chan error, 1), make(chan error, 1)
		content, more := io.Pipe()
		go func() {
			_, _, err := readAll(b, content)
			arriving <- err
		}()
		_, _ = more.Write([]byte("x"))
		go func() {
			_, _, err := readAll(b, strings.NewReader("third"))
			third <- err
		}()
		synctest.Wait()
		_ = more.Close()
		if err := <-arriving; err != nil {
			t.Errorf("the body that was arriving: %v", err)
		}
		discard()
		if err := <-third; err != nil {
			t.Errorf("the body that waited: %v", err)
		}
	})
}

func TestOfEqualBodiesTheOldestIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBodies(2 * firstBuffer)
		var results [2]chan error
		var pipes [2]*io.PipeWriter
		for i := range results {
			content, more := io.Pipe()
			results[i], pipes[i] = make(chan error, 1), more
			go func() {
				_, _, err := readAll(b, content)
				results[i] <- err
			}()
			_, _ = more.Write([]byte("x"))
		}
		third := make(chan error, 1)
		go func() {
			_, _, err := readAll(b, strings.NewReader("third"))
			third <- err
		}()
		synctest.Wait()
		for _, p := range pipes {
			_ = p.Close()
		}
		if err := <-results[0]; !errors.Is(err, errBusy) {
			t.Errorf("the oldest: %v, want %v", err, errBusy)
		}
		if err := errors.Join(<-results[1], <-third); err != nil {
			t.Errorf("the others: %v", err)
		}
	})
}

func readAll(b *bodies, content io.Reader) ([]byte, func(), error) {
	return b.read(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", content))
}
