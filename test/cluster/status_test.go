// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"testing"
)

func TestTheStatusOfAClusterThatIsNotUpSaysHowToStartIt(t *testing.T) {
	var out bytes.Buffer
	err := testCluster(t).status(t.Context(), &out)
	if want := "the cluster is not up: run make up"; err == nil || err.Error() != want || out.Len() > 0 {
		t.Errorf("got %q and the error %v, want only the error %q", &out, err, want)
	}
}
