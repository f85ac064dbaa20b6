package upgrade

import (
	"fmt"
	"io"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// CallErrors returns the calls of webhooks that the API server could not make, from its metrics:
// their number by webhook and failure policy. The policies Fail and Ignore have a metric each. Fail
// counts denials by webhooks, too, with another error_type.
func CallErrors(metrics io.Reader, webhooks map[string]bool) (map[string]int, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(metrics)
	if err != nil {
		return nil, fmt.Errorf("parse the metrics of the API server: %w", err)
	}
	out := map[string]int{}
	for name, policy := range map[string]string{
		"apiserver_admission_webhook_rejection_count": "Fail",
		"apiserver_admission_webhook_fail_open_count": "Ignore",
	} {
		for _, m := range families[name].GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if webhook, kind := labels["name"], labels["error_type"]; webhooks[webhook] && kind != "no_error" {
				out[strings.TrimSpace(webhook+" "+policy+" "+kind)] += int(m.GetCounter().GetValue())
			}
		}
	}
	return out, nil
}
