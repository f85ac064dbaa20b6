// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"time"
)

// Spec says what a service of the shop does.
type Spec struct {
	Name string
	// Route is the only route that counts.
	Route string
	// Median is the median of the time that the service itself needs.
	Median time.Duration
	// Calls are the services that it calls, if their addresses are configured.
	Calls []string
}

// Specs are the services of the shop: front calls catalogue and cart, cart
// calls payment.
var Specs = []Spec{
	{Name: "front", Route: "/buy", Median: 20 * time.Millisecond, Calls: []string{"catalogue", "cart"}},
	{Name: "catalogue", Route: "/items", Median: 30 * time.Millisecond},
	{Name: "cart", Route: "/orders", Median: 25 * time.Millisecond, Calls: []string{"payment"}},
	{Name: "payment", Route: "/payments", Median: 45 * time.Millisecond},
}

// SpecOf returns the service with this name.
func SpecOf(name string) (Spec, error) {
	for _, s := range Specs {
		if s.Name == name {
			return s, nil
		}
	}
	return Spec{}, fmt.Errorf("service %q is unknown, use front, catalogue, cart or payment", name)
}

// Answer is the body of every answer of the shop. A caller can recognize a wrong
// answer, because price and receipt follow from the id.
type Answer struct {
	ID    int `json:"id"`
	Price int `json:"price"`
	// Receipt is empty if a call that belongs to the request was not made.
	Receipt string `json:"receipt"`
}

// Right returns the right answer to a request.
func Right(id int) Answer {
	return Answer{ID: id, Price: 100 + id%900, Receipt: fmt.Sprintf("r%d", id)}
}
