package wiring

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// AcceptProtobuf makes the clients of a configuration accept protobuf, and returns it. A
// controller watches all pods of the cluster, and protobuf is cheaper to decode; objects of CRDs
// have JSON only. Requests stay JSON.
func AcceptProtobuf(config *rest.Config) *rest.Config {
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return config
}
