package cli

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/altershield/setup"
)

// provePause is the pause between signed calls while the server does not know a new scene.
const provePause = time.Second

// connectFlags are the flags of connect. An empty value keeps the one of the cluster or the
// server, or means the default.
type connectFlags struct {
	server, platform, tenant, scene, cluster, callback string
	// tokenFile is the file with the token of the platform; - is stdin.
	tokenFile string
	pre, post time.Duration
	// releaseScene is wanted with releaseCheck.
	releaseCheck bool
	releaseScene string
	// allowHTTP allows a server without TLS, replace to replace settings that are in use.
	allowHTTP, replace, dryRun bool
}

func (a *app) connectCommand() *cobra.Command {
	var f connectFlags
	c := &cobra.Command{
		Use:   "connect --server URL",
		Short: "Set up an AlterShield server for this cluster",
		Long: `Set up an AlterShield server for this cluster: create its platform, types of change and change
scene with its admin API, and prove the connection with a signed call. The address is stored in ConfigMap
config-altershield, and a given token in Secret altershield-token, only after the proof; a generated
token is stored first. A repeated command adds what is missing, and sets time limits that differ. Another
key, token or callback URL is an error without --replace. Rules are not created: without rules the
server passes every check.`,
		Example: "  kubectl breakwater connect --server https://altershield.example.com --dry-run\n" +
			"  kubectl breakwater connect --server https://altershield.example.com --cluster hangzhou-1",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			c, err := a.clients()
			if err != nil {
				return err
			}
			return a.connectServer(cmd.Context(), c, f)
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.server, "server", "", "URL of the server, without /openapi (required)")
	flags.StringVar(&f.platform, "platform", "", "Name of the platform at the server (default breakwater)")
	flags.StringVar(&f.tokenFile, "token-file", "", "File with the token of the platform, - for stdin; a token is generated for a new platform")
	flags.StringVar(&f.tenant, "tenant", "", "Code of the tenant at the server (default \"default\")")
	flags.StringVar(&f.cluster, "cluster", "", "Name of this cluster, unique within the platform (default the UID of namespace kube-system)")
	flags.StringVar(&f.scene, "scene", "", "Key of the change scene (default breakwater.CLUSTER.rollout)")
	flags.StringVar(&f.callback, "callback", "", "URL of function callback for the server (default that of its Knative Service)")
	flags.DurationVar(&f.pre, "pre-check-timeout", 0, "Time limit of a PRE check at the server (default 1m in a new scene)")
	flags.DurationVar(&f.post, "post-check-timeout", 0, "Time limit of a POST check at the server (default 1m in a new scene)")
	flags.BoolVar(&f.releaseCheck, "release-check", false, "Also create a scene for release checks")
	flags.StringVar(&f.releaseScene, "release-check-scene", "", "Key of the scene for release checks (default breakwater.CLUSTER.release)")
	flags.BoolVar(&f.allowHTTP, "allow-http", false, "Allow a server without TLS: the token can then be read on the network")
	flags.BoolVar(&f.replace, "replace", false, "Replace settings that differ in the cluster or the server")
	flags.BoolVar(&f.dryRun, "dry-run", false, "Only print what would be done")
	return c
}

// connectServer prints the missing actions and performs them. The cluster uses the server only after the
// proof. A generated token is stored before the server has it, because it cannot be read there.
func (a *app) connectServer(ctx context.Context, c *clients, f connectFlags) error {
	in, err := a.readConnectInput(ctx, c, f)
	if err != nil {
		return err
	}
	connection, err := f.connection(in)
	if err != nil {
		return err
	}
	admin := setup.NewAdmin(connection.values["base-url"])
	observed, err := admin.Observe(ctx, connection.desired)
	if err != nil {
		return fmt.Errorf("--server: %w", err)
	}
	plan, err := setup.Decide(connection.desired, observed)
	if err != nil {
		return err
	}
	if err := connection.checkLimits(observed, in.settings); err != nil {
		return err
	}
	token, err := decideToken(in, connection.desired.Platform, !plan.CreatePlatform, f.replace)
	if err != nil {
		return err
	}
	config, err := connection.config(in, token)
	if err != nil {
		return err
	}
	if err := a.printActions(in, connection, plan, token); err != nil || f.dryRun {
		return err
	}
	if token.generate {
		if token.value, err = generateToken(); err != nil {
			return err
		}
		config.Token = token.value
		if in.secret, err = c.storeToken(ctx, in.secret, token); err != nil {
			return err
		}
		token.store = false
	}
	if err := admin.Apply(ctx, connection.desired, plan, token.value); err != nil {
		return fmt.Errorf("set up the server: %w\nrepeat the command: it continues where it ended", err)
	}
	if err := a.prove(ctx, config); err != nil {
		return err
	}
	if token.store {
		if _, err := c.storeToken(ctx, in.secret, token); err != nil {
			return err
		}
	}
	if err := c.storeConfigMap(ctx, in.config, connection.changes(in.config)); err != nil {
		return err
	}
	if err := a.proveCallback(ctx, config, connection.desired.Scenes[0].Callback); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Out, "connected: %s judges the releases of cluster %s. Without rules for scene %s it passes every check.\n",
		config.BaseURL, config.ClusterName, config.ChangeSceneKey)
	return err
}

// prove makes a signed call and prints what it proves.
func (a *app) prove(ctx context.Context, config altershield.Config) error {
	checked, err := setup.Prove(ctx, config, provePause)
	switch {
	case altershield.IsSignature(err):
		return fmt.Errorf("--token-file: the server has another token for platform %s, or another header-prefix in ConfigMap config-altershield: pass the token of the platform, or choose another --platform: %w", config.Platform, err)
	case err != nil:
		return fmt.Errorf("prove the connection with a signed call: %w", err)
	case checked:
		_, err = fmt.Fprintln(a.Out, "server: accepted a signed call")
	default:
		_, err = fmt.Fprintln(a.Out, "server: accepted a signed call, and a call with a wrong signature, so the token is not proven. "+
			"Fix: set SKIP_OPEN_API_AUTH to false in its table altershield_config, and repeat the command")
	}
	return err
}

// proveCallback sends a signed verdict to the callback, as the server does, and prints what it proves.
// The server may reach a URL that cannot be reached from here.
func (a *app) proveCallback(ctx context.Context, config altershield.Config, address string) error {
	err := setup.ProveCallback(ctx, config, address, provePause)
	switch {
	case errors.Is(err, setup.ErrRejected):
		return fmt.Errorf("--callback: %s is the callback of another cluster, or does not use Secret altershield-token: pass the URL of function callback of this cluster. If it is right, compare the clocks: %w", address, err)
	case err != nil:
		_, err = fmt.Fprintf(a.Out, "callback: not proven from here: %v. The server must reach it\n", err)
	default:
		_, err = fmt.Fprintf(a.Out, "callback: %s accepted a signed call\n", address)
	}
	return err
}

// printActions prints the actions of a setup.
func (a *app) printActions(in connectInput, s connection, plan setup.Plan, token tokenDecision) error {
	var lines []string
	for _, line := range plan.Lines(s.desired) {
		lines = append(lines, "server: "+line)
	}
	switch {
	case token.generate:
		lines = append(lines, "Secret altershield-token: store a generated token")
	case token.store:
		lines = append(lines, "Secret altershield-token: store the given token")
	}
	lines = append(lines, s.lines(in.config)...)
	if len(lines) == 0 {
		lines = []string{"nothing is missing"}
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(a.Out, line); err != nil {
			return err
		}
	}
	return nil
}

// generateToken returns a token of the maximum length.
func generateToken() (string, error) {
	raw := make([]byte, maxToken*3/4)
	if _, err := rand.Read(raw); err != nil {
		return "", fmt.Errorf("generate a token: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(raw), nil
}
