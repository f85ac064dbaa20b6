// SPDX-License-Identifier: Apache-2.0

package main

import "strings"

// frugal rewrites the resources of Deployments for a small machine: requests shrink,
// because two cores hold the whole of Knative and forty functions; limits go, because a
// throttled webhook makes everything wait while it starts.
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
		if text == "limits:" || text == "requests:" {
			block, depth = text, indent
		}
		switch {
		case block == "limits:":
			continue
		case block == "requests:" && strings.HasPrefix(text, "cpu:"):
			line = strings.Repeat(" ", indent) + "cpu: 5m\n"
		case block == "requests:" && strings.HasPrefix(text, "memory:"):
			line = strings.Repeat(" ", indent) + "memory: 20Mi\n"
		}
		kept = append(kept, line)
	}
	return strings.Join(kept, "")
}
