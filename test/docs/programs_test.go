package docs

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/breakwater-dev/breakwater/cli"
	"github.com/breakwater-dev/breakwater/test/docs/commands"
)

// withoutCheck are programs of other projects, whose arguments are not checked.
var withoutCheck = []string{"asciinema", "base64", "cosign", "date", "git", "head", "helm", "jq", "kind", "mv", "openssl", "sha256sum", "tar"}

// call checks a call of a command that is run in a folder of the repository.
func (c *catalogue) call(call commands.Call, folder string) error {
	args := call.Args
	program := path.Base(args[0])
	switch {
	case program == "cluster" && slices.Contains(args, "--"):
		inner := call
		inner.Args = args[slices.Index(args, "--")+1:]
		return c.call(inner, folder)
	case program == "bash" && len(args) > 1:
		inner := call
		inner.Args = args[1:]
		return c.call(inner, folder)
	case program == "kubectl" && len(args) > 1 && args[1] == "breakwater":
		return plugin(args[2:])
	case program == "kubectl":
		return errors.Join(c.kubectl(call), filesOf(args, folder))
	case program == "ko":
		return filesOf(args, folder)
	case program == "make":
		return c.make(args[1:])
	case program == "judge":
		return flagsIn(args[2:], "cmd/judge", "command "+args[1], []string{`"` + args[1] + `"`})
	case program == "go":
		return goCommand(args[1:], folder)
	case program == "cd":
		return needs(path.Join(folder, args[1]))
	case program == "uninstall.sh":
		return flagsIn(args[1:], "hack/uninstall.sh", "hack/uninstall.sh", nil)
	case strings.HasPrefix(args[0], "hack/"):
		return needs(args[0])
	case program == "curl" || program == "ask":
		return nil // the rights and answers of services are tested by the commands themselves
	case slices.Contains(withoutCheck, program):
		return nil
	}
	return fmt.Errorf("unknown program %q: if the block has output, begin its commands with %q", args[0], "$ ")
}

func needs(file string) error {
	if !exists(file) {
		return fmt.Errorf("%s does not exist", file)
	}
	return nil
}

// plugin checks the arguments and flags of the kubectl plugin.
func plugin(args []string) error {
	if len(args) == 0 || args[0] == "help" {
		return nil
	}
	found, rest, err := cli.New("test", genericiooptions.NewTestIOStreamsDiscard()).Find(args)
	if err != nil {
		return err
	}
	if err := found.ParseFlags(rest); err != nil {
		return err
	}
	if len(rest) == 0 {
		return nil // a mention of the command
	}
	return found.ValidateArgs(found.Flags().Args())
}

var variable = regexp.MustCompile(`^([A-Z_]+)=(.*)$`)

// make checks targets, variables, and values of variables that are folders.
func (c *catalogue) make(args []string) error {
	for _, arg := range args {
		m := variable.FindStringSubmatch(arg)
		switch {
		case arg == "-s":
		case m == nil && !c.targets[arg]:
			return fmt.Errorf("the Makefile has no target %q", arg)
		case m != nil && !strings.Contains(c.makefile, "$("+m[1]+")"):
			return fmt.Errorf("the Makefile has no variable %s", m[1])
		case m != nil && m[1] == "OVERLAY":
			if err := needs("config/overlays/" + m[2]); err != nil {
				return err
			}
		case m != nil && m[1] == "PARTS":
			for _, part := range strings.Fields(m[2]) {
				if err := needs(part + "/Kustomization"); err != nil {
					return needs(part)
				}
			}
		}
	}
	return nil
}

// flagsIn checks that the sources of a program contain its flags and the words.
func flagsIn(args []string, source, what string, words []string) error {
	var text strings.Builder
	for _, file := range sources(source) {
		text.WriteString(file)
	}
	for _, arg := range args {
		if name, isFlag := strings.CutPrefix(arg, "-"); isFlag {
			name, _, _ = strings.Cut(strings.TrimPrefix(name, "-"), "=")
			if strings.HasSuffix(source, ".sh") {
				name = "--" + name + ")"
			} else {
				name = `"` + name + `"`
			}
			words = append(words, name)
		}
	}
	for _, word := range words {
		if !strings.Contains(text.String(), word) {
			return fmt.Errorf("%s does not have %s", what, word)
		}
	}
	return nil
}

// goCommand checks the package, and the flags of our programs.
func goCommand(args []string, folder string) error {
	if len(args) > 2 && args[0] == "-C" {
		folder, args = path.Join(folder, args[1]), args[2:]
	}
	i := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "./") })
	if i < 0 {
		return errors.New("go has no package of the repository")
	}
	pkg := path.Join(folder, args[i])
	if err := needs(pkg); err != nil || args[0] != "run" {
		return err
	}
	return flagsIn(slices.DeleteFunc(slices.Clone(args[i+1:]), func(a string) bool { return a == "--help" }), pkg, pkg, nil)
}

// outsideOfRepository are files of a release, and files that the reader writes.
var outsideOfRepository = regexp.MustCompile(`^(-|…|protection\.yaml|permission\.yaml|breakwater\.yaml|judge\.yaml|monitoring\.yaml|notify\.yaml|web\.yaml|(canary|key)=canary\.key|breakwater\.krew\.yaml)$`)

// filesOf checks the files of flags.
func filesOf(args []string, folder string) error {
	for i, arg := range args {
		flag, file, given := strings.Cut(arg, "=")
		if !slices.Contains([]string{"-f", "--filename", "--patch-file", "--from-file", "kustomize"}, flag) {
			continue
		}
		if !given {
			if i+1 == len(args) {
				return nil
			}
			file = args[i+1]
		}
		if !outsideOfRepository.MatchString(file) {
			if err := needs(path.Join(folder, file)); err != nil {
				return err
			}
		}
	}
	return nil
}
