package centre

import (
	"strings"
	"testing"
)

func TestARetentionThatIsTooShortIsRejected(t *testing.T) {
	for value, valid := range map[string]bool{"-1h": false, "0s": false, "47h": false, "48h": true, "2160h": true} {
		t.Setenv("RETENTION", value)
		_, err := ReadConfig()
		if (err == nil) != valid || err != nil && !strings.Contains(err.Error(), "RETENTION must be at least 48h") {
			t.Errorf("RETENTION %s: %v", value, err)
		}
	}
}
