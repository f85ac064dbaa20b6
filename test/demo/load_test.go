package main

import (
	"errors"
	"testing"
)

func TestALoadCountsWhoAnswers(t *testing.T) {
	l := &load{}
	for _, by := range []string{"web-00002", "web-00001", "web-00001"} {
		l.add(by, nil)
	}
	if !l.onlyLast(2, 1, "web-00001") || l.onlyLast(3, 0, "web-00001") || l.onlyLast(4, 0, "web-00001") {
		t.Error("the last 2 of 3 requests were answered by web-00001")
	}
	if earlier := l.answered(); earlier != 3 || l.onlyLast(2, 2, "web-00001") {
		t.Errorf("one request was answered after the first 2 of %d", earlier)
	}
	if got, want := l.take(), "web-00001 answered 2, web-00002 answered 1, none failed"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if l.onlyLast(1, 0, "web-00001") {
		t.Error("the requests are counted again")
	}
	if l.add("", errors.New("refused")) || l.failed() == nil {
		t.Error("a request that failed does not end the load")
	}
}
