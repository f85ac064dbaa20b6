// Package apiconnection closes connections to an API server that does not answer any more.
package apiconnection

import "os"

// The variables of client-go. A process has one HTTP/2 connection to the API servers. If the node of its server is lost,
// no packet says so, and requests wait on this connection although other API servers answer. With the
// defaults of 30 and 15 seconds a callback is not answered before the server has given up, and controllers lose
// their Leases.
var detection = map[string]string{
	// How many seconds without a frame until a ping is sent.
	"HTTP2_READ_IDLE_TIMEOUT_SECONDS": "5",
	// How many seconds until a connection without an answer to its ping is closed.
	"HTTP2_PING_TIMEOUT_SECONDS": "3",
}

// DetectLoss makes the clients that are created after it close a lost connection after 8 seconds. It changes no
// variable that the environment sets.
func DetectLoss() {
	for name, value := range detection {
		if _, set := os.LookupEnv(name); set {
			continue
		}
		if err := os.Setenv(name, value); err != nil {
			panic(err) // only an invalid name fails
		}
	}
}
