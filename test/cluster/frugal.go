// SPDX-License-Identifier: Apache-2.0

package main

import "strings"

// frugal rewrites the resources of Deployments for a small machine: requests shrink,
// because two cores hold the whole of Knative and forty functions; limits go, because a
// throttled webhook makes everything wait while it starts. Readiness is asked for at once
// and each second: two controllers would otherwise be ready after 20 to 30 s, and "up" with
// them. Liveness becomes patient: an API server, a compiler and a hundred pods share two
// cores here, and a webhook that is ended because it took over a second to answer a probe
// is the outage that its probe is meant to mend.
func frugal(manifests string) string {
	docs := strings.Split(manifests, "\n---")
	for i, d := range docs {
		if strings.Contains("\n"+d, "\nkind: Deployment") {
			docs[i] = frugalDeployment(d)
		}
	}
	return strings.Join(docs, "\n---")
}

func frugalDeployment(doc string) string {
	var kept []string
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
			line = strings.Repeat(" ", indent) + "cpu: 5m\n"
		case block == "requests:" && strings.HasPrefix(text, "memory:"):
			line = strings.Repeat(" ", indent) + "memory: 20Mi\n"
		case block == "readinessProbe:" && strings.HasPrefix(text, "initialDelaySeconds:"):
			line = strings.Repeat(" ", indent) + "initialDelaySeconds: 0\n"
		case block == "readinessProbe:" && strings.HasPrefix(text, "periodSeconds:"):
			line = strings.Repeat(" ", indent) + "periodSeconds: 1\n"
		}
		kept = append(kept, line)
	}
	return strings.Join(kept, "")
}
