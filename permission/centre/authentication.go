package centre

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/internal/apiconnection"
	"github.com/breakwater-dev/breakwater/permission/centre/access"
)

const (
	// issuerStartTimeout is how long the start waits for the OIDC issuers. A replica
	// that is ready then accepts their tokens, unless they are unreachable.
	issuerStartTimeout = 5 * time.Second
	// issuerRetryInterval is how often an unreachable OIDC issuer is called again.
	issuerRetryInterval = 5 * time.Second
)

// authentication has the authenticators and roles of ACCESS_FILE and TOKENS_FILE.
type authentication struct {
	roles          access.Roles
	authenticators []access.Authenticator
	// issuers are the authenticators of type OIDC.
	issuers []*access.OIDC
}

func newAuthentication(ctx context.Context, config Config) (authentication, error) {
	file, err := access.ReadConfig(config.AccessFile)
	a := authentication{roles: file.Roles}
	if err != nil {
		return a, err
	}
	if config.TokensFile != "" {
		static, err := access.NewStatic(config.TokensFile)
		if err != nil {
			return a, err
		}
		a.authenticators = append(a.authenticators, static)
	}
	for _, o := range file.OIDC {
		issuer := access.NewOIDC(o, clock.RealClock{})
		a.issuers, a.authenticators = append(a.issuers, issuer), append(a.authenticators, issuer)
	}
	if file.TokenReview != nil {
		apiconnection.DetectLoss()
		cluster, err := rest.InClusterConfig()
		if err != nil {
			return a, fmt.Errorf("create client for tokenReview: %w", err)
		}
		client, err := kubernetes.NewForConfig(cluster)
		if err != nil {
			return a, fmt.Errorf("create client for tokenReview: %w", err)
		}
		a.authenticators = append(a.authenticators, access.NewKubernetes(client, file.TokenReview.Audience, clock.RealClock{}))
	}
	if len(a.authenticators) == 0 {
		return a, fmt.Errorf("no authenticator is configured: set TOKENS_FILE, or tokenReview or oidc in %s", config.AccessFile)
	}
	discover(ctx, a.issuers)
	return a, nil
}

// discover calls all issuers once. watchIssuers calls the unreachable ones again.
func discover(ctx context.Context, issuers []*access.OIDC) {
	ctx, cancel := context.WithTimeout(ctx, issuerStartTimeout)
	defer cancel()
	var all sync.WaitGroup
	for _, issuer := range issuers {
		all.Go(func() { _ = issuer.Discover(ctx) })
	}
	all.Wait()
}

// watchIssuers calls unreachable issuers until they answer.
func (c *Centre) watchIssuers(ctx context.Context) error {
	var all sync.WaitGroup
	for _, issuer := range c.issuers {
		all.Go(func() { c.watchIssuer(ctx, issuer) })
	}
	all.Wait()
	return nil
}

// watchIssuer calls an issuer while it is unreachable, and logs when it becomes unreachable or reachable.
func (c *Centre) watchIssuer(ctx context.Context, issuer *access.OIDC) {
	ticker := time.NewTicker(issuerRetryInterval)
	defer ticker.Stop()
	for unreachable := false; ctx.Err() == nil; {
		failure := issuer.Failure()
		if failure != nil && !unreachable {
			c.log.Warn("an OIDC issuer is unreachable; its tokens are rejected until it answers, unless their key is known", "issuer", issuer.Issuer(), "error", failure)
		} else if failure == nil && unreachable {
			c.log.Info("the OIDC issuer answers again", "issuer", issuer.Issuer())
		}
		unreachable = failure != nil
		select {
		case <-ctx.Done():
		case <-ticker.C:
			if issuer.Failure() != nil {
				_ = issuer.Discover(ctx) // recorded as its Failure
			}
		}
	}
}
