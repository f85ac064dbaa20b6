package controlplane

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// ControlPlane is a running control plane.
type ControlPlane struct {
	// root is the folder of the repository, dir the folder of the state.
	root, dir string
	paths     paths
	config    *rest.Config
	// tool runs the processes until stdin is closed.
	tool  *exec.Cmd
	stdin io.Closer

	proxy *proxy
	// ports are the ports of the webhooks by Service.
	ports map[string]int
	// requests are the requests of the components.
	requests Requests
	// ctx ends with Stop.
	ctx    context.Context //nolint:containedctx // the life of the components
	cancel context.CancelFunc
}

// paths are the paths that the tool prints.
type paths struct {
	Kubeconfig string `json:"kubeconfig"`
	Kubectl    string `json:"kubectl"`
	Proxy      string `json:"proxy"`
}

// Main runs the tests of a package on a control plane that start starts, and returns the
// exit code. After a failure it keeps the logs.
func Main(tests interface{ Run() int }, start func(context.Context) (*ControlPlane, error)) int {
	p, err := start(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the control plane:", err)
		return 1
	}
	running = p
	code := tests.Run()
	if code != 0 {
		kept := p.dir + "-logs"
		fmt.Fprintln(os.Stderr, "logs of the control plane:", kept)
		if err := os.Rename(p.Logs(), kept); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	if err := p.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// running is the control plane of the tests.
var running *ControlPlane

// WebhookURL returns the URL, without a path, at which any client can connect to the webhooks
// of a Service.
func WebhookURL(service string) string {
	return "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(running.ports[service]))
}

// Start starts a control plane. It sets KUBECONFIG and puts the folder of kubectl first in PATH.
func Start(ctx context.Context) (*ControlPlane, error) {
	root, err := repository()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "breakwater-controlplane-")
	if err != nil {
		return nil, err
	}
	p := &ControlPlane{root: root, dir: dir, proxy: &proxy{}, ports: map[string]int{}}
	p.ctx, p.cancel = context.WithCancel(ctx)
	if err := errors.Join(p.redirectKlog(), p.start()); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// redirectKlog makes the libraries of Kubernetes log to a file: testing replaces
// os.Stderr when the tests begin, which is a data race with components that use it.
func (p *ControlPlane) redirectKlog() error {
	if err := os.MkdirAll(p.Logs(), 0o755); err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(p.Logs(), "klog.log"))
	if err != nil {
		return err
	}
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	if err := errors.Join(flags.Set("logtostderr", "false"), flags.Set("stderrthreshold", "FATAL")); err != nil {
		return fmt.Errorf("configure klog: %w", err)
	}
	klog.SetOutput(out)
	return nil
}

// buildTool returns the cluster tool: that of BREAKWATER_CLUSTER_TOOL, which make has built, or a
// new one.
func (p *ControlPlane) buildTool() (string, error) {
	if tool := os.Getenv("BREAKWATER_CLUSTER_TOOL"); tool != "" {
		return tool, nil
	}
	tool := filepath.Join(p.dir, "cluster")
	build := exec.CommandContext(p.ctx, "go", "build", "-o", tool, ".")
	build.Dir = filepath.Join(p.root, "test", "cluster")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build test/cluster: %w\n%s", err, out)
	}
	return tool, nil
}

func (p *ControlPlane) start() error {
	tool, err := p.buildTool()
	if err != nil {
		return err
	}
	p.tool = exec.CommandContext(context.WithoutCancel(p.ctx), tool, "controlplane", p.dir)
	p.tool.Dir, p.tool.Stderr = p.root, os.Stderr
	stdin, err := p.tool.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := p.tool.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.tool.Start(); err != nil {
		return fmt.Errorf("start the control plane: %w", err)
	}
	p.stdin = stdin
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("the control plane did not start, see the messages above: %w", err)
	}
	if err := json.Unmarshal(line, &p.paths); err != nil {
		return fmt.Errorf("read paths of the control plane: %w", err)
	}
	if err := p.proxy.serve(p.ctx, p.paths.Proxy); err != nil {
		return err
	}
	if p.config, err = clientcmd.BuildConfigFromFlags("", p.paths.Kubeconfig); err != nil {
		return fmt.Errorf("load kubeconfig: %w", err)
	}
	return errors.Join(os.Setenv("KUBECONFIG", p.paths.Kubeconfig),
		os.Setenv("PATH", filepath.Dir(p.paths.Kubectl)+string(os.PathListSeparator)+os.Getenv("PATH")))
}

// Stop ends the processes and removes their state. It does not wait for the components:
// the process of the tests ends next.
func (p *ControlPlane) Stop() error {
	p.cancel()
	if p.stdin != nil {
		// The tool ends the processes when stdin is closed, also after a crash of
		// this process.
		if err := errors.Join(p.stdin.Close(), p.tool.Wait()); err != nil {
			return fmt.Errorf("stop the control plane: %w", err)
		}
	}
	if err := os.RemoveAll(p.dir); err != nil {
		return fmt.Errorf("remove the state of the control plane: %w", err)
	}
	return nil
}

// Requests counts the requests of the components to the API server.
func (p *ControlPlane) Requests() *Requests { return &p.requests }

// Logs is the folder of the logs; Stop removes it.
func (p *ControlPlane) Logs() string { return filepath.Join(p.dir, "log") }

// repository finds the folder of the repository above the working folder.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "test", "cluster", "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("find the repository: no folder above has test/cluster")
		}
	}
}
