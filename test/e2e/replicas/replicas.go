// Package replicas sends requests that reach each replica of a webhook.
package replicas

import "sync"

// Reach calls request n times at once and returns the first error in the order of the calls. The API
// server has connections to a webhook that stay open, and uses the last one again: requests one
// after the other all reach one replica. Requests at once need more connections, and each new one
// goes to any replica.
func Reach(n int, request func() error) error {
	results := make([]error, n)
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() { results[i] = request() })
	}
	all.Wait()
	for _, err := range results {
		if err != nil {
			return err
		}
	}
	return nil
}
