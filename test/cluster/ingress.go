// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"strings"
	"time"
)

//go:embed manifests/ingress.yaml
var ingressManifest string

// startIngress runs Traefik, with its Knative provider, as a process at the
// node's address. Two Services without selectors point to it, and the
// cluster-local names of Knative Services are CNAMEs of the private one.
func (c *cluster) startIngress(ctx context.Context) error {
	if err := c.apply(ctx, "breakwater-ingress", []byte(strings.ReplaceAll(ingressManifest, "NODE_ADDRESS", c.nodeAddress))); err != nil {
		return err
	}
	const namespace = "breakwater-ingress"
	err := c.start(ctx, process{Name: "traefik", Env: []string{"KUBECONFIG=" + c.kubeconfig("ingress")},
		Command: []string{c.binary(traefik, "traefik"),
			"--experimental.knative=true", "--providers.knative=true",
			"--providers.knative.publicentrypoints=public", "--providers.knative.privateentrypoints=private",
			"--providers.knative.publicservice.name=public", "--providers.knative.publicservice.namespace=" + namespace,
			"--providers.knative.privateservice.name=private", "--providers.knative.privateservice.namespace=" + namespace,
			// Changes within this time cost one reload; a new function waits at most this long.
			"--providers.knative.throttleduration=50ms", "--providers.providersthrottleduration=50ms",
			"--entrypoints.public.address=" + c.nodeAddress + ":8080", "--entrypoints.private.address=" + c.nodeAddress + ":8081",
			"--entrypoints.ping.address=" + c.nodeAddress + ":8082", "--ping=true", "--ping.entrypoint=ping",
			// The function's own timeout limits a request.
			"--entrypoints.public.transport.respondingtimeouts.readtimeout=0", "--entrypoints.private.transport.respondingtimeouts.readtimeout=0",
			"--serverstransport.maxidleconnsperhost=200",
			"--global.checknewversion=false", "--global.sendanonymoususage=false", "--log.level=INFO",
		}})
	if err != nil {
		return err
	}
	return c.awaitHTTP(ctx, "traefik", "http://"+c.nodeAddress+":8082/ping", time.Minute)
}
