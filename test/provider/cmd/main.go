// Command cmd serves the test double of a provider on LISTEN (default :8080).
// FAULTS, in JSON, sets the initial faults.
package main

import (
	"encoding/json"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/breakwater-dev/breakwater/test/provider"
)

func main() {
	double := provider.New(time.Now)
	if text := os.Getenv("FAULTS"); text != "" {
		var f provider.Faults
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			log.Fatal("FAULTS: ", err)
		}
		double.SetFaults(f)
	}
	address := os.Getenv("LISTEN")
	if address == "" {
		address = ":8080"
	}
	server := &http.Server{Addr: address, Handler: double, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}
