// SPDX-License-Identifier: Apache-2.0

package main

import "strings"

// reduceResources adapts the Deployments to a small machine. It gives each container
// requests of the same small size, because two cores run all of Knative and forty functions.
// A container without a request would get almost no CPU on a busy machine: the dispatcher of
// the Broker has none. It removes limits, because a throttled webhook delays everything while it
// starts. Readiness probes start at once and run every second; otherwise two
// controllers would delay "up" by 20 to 30 s. Liveness probes get longer
// timeouts: on two busy cores a webhook may need more than a second to answer,
// and a restart would cause an outage.
func reduceResources(manifests string) string {
	docs := strings.Split(manifests, "\n---")
	for i, d := range docs {
		if strings.Contains("\n"+d, "\nkind: Deployment") {
			docs[i] = reduceDeployment(d)
		}
	}
	return strings.Join(docs, "\n---")
}

func reduceDeployment(doc string) string {
	var kept []string
	bare := !strings.Contains(doc, "resources:")
	block, depth := "", 0
	for line := range strings.Lines(doc) {
		text := strings.TrimSpace(line)
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if block != "" && text != "" && indent <= depth {
			block = ""
		}
		if text == "limits:" || text == "requests:" || text == "readinessProbe:" || text == "livenessProbe:" {
			block, depth = text, indent
			if text == "livenessProbe:" {
				inner := strings.Repeat(" ", indent+2)
				line += inner + "timeoutSeconds: 10\n" + inner + "failureThreshold: 12\n"
			}
		}
		switch {
		case block == "limits:":
			continue
		case block == "livenessProbe:" && (strings.HasPrefix(text, "timeoutSeconds:") || strings.HasPrefix(text, "failureThreshold:")):
			continue
		case block == "requests:" && strings.HasPrefix(text, "cpu:"):
			line = strings.Repeat(" ", indent) + "cpu: 20m\n"
		case block == "requests:" && strings.HasPrefix(text, "memory:"):
			line = strings.Repeat(" ", indent) + "memory: 20Mi\n"
		case block == "readinessProbe:" && strings.HasPrefix(text, "initialDelaySeconds:"):
			line = strings.Repeat(" ", indent) + "initialDelaySeconds: 0\n"
		case bare && strings.HasPrefix(text, "image:"):
			line += strings.Repeat(" ", indent) + "resources: {requests: {cpu: 20m, memory: 20Mi}}\n"
		case block == "readinessProbe:" && strings.HasPrefix(text, "periodSeconds:"):
			line = strings.Repeat(" ", indent) + "periodSeconds: 1\n"
		}
		kept = append(kept, line)
	}
	return strings.Join(kept, "")
}
