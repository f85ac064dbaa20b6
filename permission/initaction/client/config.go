package client

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
)

// DefaultDeadline is how long a round lasts.
const DefaultDeadline = 10 * time.Minute

// Config is what the environment says.
type Config struct {
	// URL is the whole one of the POST.
	URL       string
	Sets      []string
	TokenFile string
	Deadline  time.Duration
	// Never: the pod's restartPolicy is Never.
	RestartNever bool
}

// Read reads the environment. The error names the variable.
func ReadConfig(getenv func(string) string) (Config, error) {
	c := Config{TokenFile: getenv(protocol.EnvTokenFile), Deadline: DefaultDeadline, RestartNever: getenv(protocol.EnvRestartPolicy) == "Never"}
	server, err := url.Parse(getenv(protocol.EnvServer))
	if err != nil || server.Host == "" || (server.Scheme != "http" && server.Scheme != "https") {
		return Config{}, fmt.Errorf("%s %q: want a URL such as http://init-action-server", protocol.EnvServer, getenv(protocol.EnvServer))
	}
	c.URL = server.JoinPath(protocol.AuthorizePath).String()
	c.Sets = strings.FieldsFunc(getenv(protocol.EnvSets), func(r rune) bool { return r == ',' || r == ' ' })
	if len(c.Sets) == 0 {
		return Config{}, fmt.Errorf("%s: no permission set", protocol.EnvSets)
	}
	if c.TokenFile == "" {
		return Config{}, fmt.Errorf("%s: no file", protocol.EnvTokenFile)
	}
	if raw := getenv(protocol.EnvDeadline); raw != "" {
		if c.Deadline, err = time.ParseDuration(raw); err != nil || c.Deadline <= 0 {
			return Config{}, fmt.Errorf("%s %q: want a duration such as 10m", protocol.EnvDeadline, raw)
		}
	}
	return c, nil
}
