// SPDX-License-Identifier: Apache-2.0

package main

import "strings"

// frugal rewrites the resources of Deployments for a small machine: requests shrink,
// because two cores hold the whole of Knative and forty functions; limits go, because a
// throttled webhook makes everything wait while it starts. Readiness is asked for at once
// and each second: two controllers would otherwise be ready after 20 to 30 s, and "up" with
// them. Liveness stays patient.
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
		if text == "limits:" || text == "requests:" || text == "readinessProbe:" {
			block, depth = text, indent
		}
		switch {
		case block == "limits:":
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
