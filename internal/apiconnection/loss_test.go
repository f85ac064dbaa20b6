package apiconnection_test

import (
	"os"
	"testing"

	"github.com/breakwater-dev/breakwater/internal/apiconnection"
)

func TestTheEnvironmentDecidesWhenAConnectionIsLost(t *testing.T) {
	const idle, ping = "HTTP2_READ_IDLE_TIMEOUT_SECONDS", "HTTP2_PING_TIMEOUT_SECONDS"
	t.Setenv(idle, "60")
	t.Setenv(ping, "") // restores the variable
	if err := os.Unsetenv(ping); err != nil {
		t.Fatal(err)
	}
	apiconnection.DetectLoss()
	if os.Getenv(idle) != "60" || os.Getenv(ping) != "3" {
		t.Errorf("%s=%s, want 60; %s=%s, want 3", idle, os.Getenv(idle), ping, os.Getenv(ping))
	}
}
