package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
)

// Built is the location of the programs of a folder of test/cluster/modules.
type Built struct {
	// Binaries is the folder of the binaries, Module the folder of the main module's source.
	Binaries string `json:"binaries"`
	Module   string `json:"module"`
}

// Build builds the programs of a folder of test/cluster/modules, unless they are cached.
func (p *ControlPlane) Build(ctx context.Context, family string) (Built, error) {
	tool := exec.CommandContext(ctx, p.tool.Path, "build", family)
	tool.Dir, tool.Stderr = p.root, os.Stderr
	line, err := tool.Output()
	if err != nil {
		return Built{}, fmt.Errorf("build %s: %w", family, err)
	}
	var built Built
	if err := json.Unmarshal(line, &built); err != nil {
		return Built{}, fmt.Errorf("read where %s is: %w", family, err)
	}
	return built, nil
}

// KubeconfigOf writes a kubeconfig of a ServiceAccount with all rights.
func (p *ControlPlane) KubeconfigOf(namespace, name string) (string, error) {
	config, err := clientcmd.LoadFromFile(p.paths.Kubeconfig)
	if err != nil {
		return "", fmt.Errorf("load kubeconfig: %w", err)
	}
	for _, user := range config.AuthInfos {
		user.Impersonate, user.ImpersonateGroups = "system:serviceaccount:"+namespace+":"+name, []string{"system:masters"}
	}
	path := filepath.Join(p.dir, name+".kubeconfig")
	return path, clientcmd.WriteToFile(*config, path)
}

// RunProgram runs a program until Stop, or until this process crashes. Its output goes to
// the logs. The variables are added to the environment.
func (p *ControlPlane) RunProgram(path string, variables []string, args ...string) error {
	name := filepath.Base(path)
	log, err := os.Create(filepath.Join(p.Logs(), name+".log"))
	if err != nil {
		return err
	}
	program := exec.CommandContext(p.ctx, path, args...)
	program.Stdout, program.Stderr = log, log
	program.Env = append(os.Environ(), variables...)
	program.SysProcAttr = killedWithParent()
	if err := program.Start(); err != nil {
		return errors.Join(fmt.Errorf("start %s: %w", name, err), log.Close())
	}
	go func() {
		_ = program.Wait()
		_ = log.Close()
	}()
	return nil
}
