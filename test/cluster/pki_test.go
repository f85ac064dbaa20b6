// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"testing"
)

// "up" finds a cluster that is not healthy, and replaces it by a new one.
func TestAClientUsesTheCertificatesOfTheNewCluster(t *testing.T) {
	c := testCluster(t)
	client := func() *http.Client {
		t.Helper()
		if err := c.makePKI(); err != nil {
			t.Fatal(err)
		}
		client, err := c.apiClient()
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
	if former := client(); client() == former {
		t.Error("the client has the certificates of the former cluster")
	}
}
