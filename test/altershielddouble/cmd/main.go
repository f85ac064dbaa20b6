// Command cmd runs the double of the AlterShield server. Use it only for tests
// and demonstrations: its control interface has no authentication.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/kelseyhightower/envconfig"
	"golang.org/x/sync/errgroup"

	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
)

// environment configures the double; see double.Options.
type environment struct {
	Listen           string `default:":8080"`
	CallbackURL      string `envconfig:"CALLBACK_URL"`
	Platform         string `default:"breakwater"`
	Token            string
	HeaderPrefix     string           `envconfig:"HEADER_PREFIX" default:"X-AlterShield-"`
	Signature        double.Signature `default:"enforce"`
	Scene            string
	Generation1Scene string        `envconfig:"GENERATION1_SCENE"`
	CheckTimeout     time.Duration `envconfig:"CHECK_TIMEOUT"`
	// Empty: nothing exists until the admin API creates it, so Token is not needed.
	Empty      bool
	SceneCache time.Duration `envconfig:"SCENE_CACHE"`
	// StateFile keeps the state across a restart of the process. Empty: no
	// file.
	StateFile string `envconfig:"STATE_FILE"`
}

func main() {
	var env environment
	if err := envconfig.Process("", &env); err != nil {
		log.Fatal(err)
	}
	if env.Signature != double.Enforce && env.Signature != double.Skip {
		log.Fatalf("invalid SIGNATURE %q: use enforce or skip", env.Signature)
	}
	if env.Token == "" && !env.Empty {
		log.Fatal("TOKEN is missing: set the token of the platform, or EMPTY=true")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := serve(ctx, env)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func serve(ctx context.Context, env environment) error {
	double := double.NewDouble(double.Options{
		CallbackURL:      env.CallbackURL,
		Tokens:           map[string]string{env.Platform: env.Token},
		HeaderPrefix:     env.HeaderPrefix,
		Signature:        env.Signature,
		Scene:            env.Scene,
		Generation1Scene: env.Generation1Scene,
		CheckTimeout:     env.CheckTimeout,
		Empty:            env.Empty,
		SceneCache:       env.SceneCache,
	})
	if env.StateFile != "" {
		if err := double.Persist(env.StateFile); err != nil {
			return err
		}
	}
	server := &http.Server{Addr: env.Listen, Handler: double.Handler(), ReadHeaderTimeout: 10 * time.Second}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("listen: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		last, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		double.Close()
		return server.Shutdown(last)
	})
	log.Printf("the AlterShield double listens on %s and sends callbacks to %q", env.Listen, env.CallbackURL)
	return group.Wait()
}
