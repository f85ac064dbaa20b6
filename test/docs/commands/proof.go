package commands

import "regexp"

// Plane is a control plane of tests that runs commands of pages.
type Plane string

const (
	// Change is the control plane of test/change.
	Change Plane = "test/change"
	// Protection is the control plane of test/e2e/protection.
	Protection Plane = "test/e2e/protection"
)

// Proof says where a command is run, or why no test runs it.
type Proof struct {
	// Command matches the texts of commands. The first matching proof applies to a command.
	Command *regexp.Regexp
	// On is the control plane that runs the commands as they are on the page.
	On Plane
	// File is a file of a test or of CI that runs the command, and Has the call in it.
	File, Has string
	// Reason is why no test runs the command.
	Reason string
}

// Reasons of commands that are only checked.
const (
	mention     = "it names a command without its arguments"
	registry    = "it needs a registry that the nodes of a cluster can reach"
	release     = "it needs the published files of a release; make test-release makes them and checks their contents"
	others      = "it needs a cluster with software of others: Argo CD, Knative settings, Prometheus Operator, RabbitMQ"
	interactive = "it opens an editor or changes the machine of the reader"
	ends        = "it shows, measures or removes the embedded cluster, or runs longer than CI"
	byHand      = "its package has tests; the program serves, measures or records for minutes"
	sample      = "it runs the sample shop on the embedded cluster"
	environment = "it sets variables for the commands that follow"
	embedded    = "it needs the containers of Breakwater, which no test of this command has"
	knative     = "it reads Knative Services, which a control plane does not have"
	earlier     = "it needs what an earlier command of its page stored, and the control plane runs commands as dry runs"
)

func on(plane Plane, command string) Proof {
	return Proof{Command: regexp.MustCompile("^" + command + "$"), On: plane}
}

func in(file, has, command string) Proof {
	return Proof{Command: regexp.MustCompile("^" + command + "$"), File: file, Has: has}
}

func not(reason, command string) Proof {
	return Proof{Command: regexp.MustCompile("^" + command + "$"), Reason: reason}
}

// system begins commands in the namespace of Breakwater.
const system = "kubectl -n altershieldoperator-system "

// Proofs are the proofs of all commands, in the order of programs.
var Proofs = []Proof{
	// kubectl.
	not(mention, `kubectl (apply|apply -f|apply -k (FOLDER|…)|apply --server-side|breakwater|create token --duration=10m|delete|delete -f|delete pod|describe|describe pod|describe revision|drain|rollout restart|rollout status|rollout undo|wait)`),
	not(release, `kubectl (apply|delete) -f (breakwater|judge|monitoring|notify|permission|protection)\.yaml|kubectl krew .*|kubectl apply -k config/overlays/strict`),
	not(others, `kubectl -n (argocd|knative-eventing|knative-serving|rabbitmq-system) .*|kubectl get podmonitors.*|kubectl apply -f config/(monitoring|samples/knative-podmonitor\.yaml)`),
	on(Protection, `kubectl edit pdfc cluster`),
	in("test/e2e/permission/commands_test.go", `documentedCommands(t, "permission/application-team.md", "Reset the breaker")`,
		`kubectl -n shop create (serviceaccount|rolebinding) my-account.*`),
	not(interactive, `kubectl .*\bedit .*`),
	not("web.yaml is a file of the reader", `kubectl apply -f web\.yaml`),
	not(earlier, system+`patch (secret (external-judge-keys|notify-webhook)|opsconfiginfo release-check) .*|kubectl patch releasecheck .*`),
	not(registry, `kubectl kustomize .*\| ko apply .*`),
	not(embedded, system+`(get|patch) secret permission-centre-certs .*`),

	in("test/e2e/permission/commands_test.go", `documentedCommands(t, "permission/application-team.md", "Reset the breaker")`,
		system+`port-forward service/init-action-server .*|curl .*/v1/pods/.*`),
	in("test/e2e/permission/commands_test.go", `documentedCommands(t, "permission/centre.md", "Operate")`,
		`ask\(\) .*|`+system+`(port-forward service/permission-centre .*|get configmap permission-ca .*)|ask.*/v1/(applications.*|clusters/\$cluster")`),
	in("permission/centre/export_import_test.go", `"a backup of a running centre"`, system+`(exec deployment/permission-centre .*|attach -i centre-import .*)`),
	not(embedded, system+`(scale deployment permission-centre|wait .* pod/centre-import|get (deployment|persistentvolumeclaim) permission-centre|logs pod/centre-import|delete (pod centre-import|persistentvolumeclaim permission-centre)).*`),
	not(embedded, `kubectl create -f - < claim\.json`),
	not("test/e2e/permission confirms no loss of pods of its own cluster", `ask .*/pods/confirm"`),
	in("hack/wait-ready.sh", `wait_for --for=condition=Ready ksvc --all`, system+`wait --for=condition=Ready (broker,trigger,ksvc --all|ksvc/judge) .*`),
	in("hack/wait-ready.sh", `rollout status --timeout=180s deployment -l '!serving.knative.dev/service'`, system+`rollout status deployment .*`),
	in("hack/wait-ready.sh", `wait_for --for=condition=Available deployment --all`, system+`wait --for=condition=Available .*`),
	in("test/e2e/oidc_test.go", `"delete", "brokers,triggers", "--all"`, system+`delete brokers,triggers --all`),
	in("test/e2e/oidc_test.go", `"get", "broker", "default"`, system+`get broker default .*`),
	in("test/e2e/oidc_test.go", `"get", "broker,trigger"`, system+`get broker,trigger`),
	in("test/change/byhand_test.go", `{"rollout", "resume", "deployment", "web"}`, `kubectl rollout resume deployment web`),
	not("it forwards until it is interrupted", system+`port-forward service/openapi .*`),
	in("test/change/rollbackapi_test.go", `const page = "docs/change/rollback.md"`,
		system+`get configmap openapi-ca .*|(url|token)=.*|curl .*/suspend/deployment.*|curl -X PUT .*/deployment/rollback.*`),
	in("test/change/plugin_test.go", `"reject", "deployment/web", "-m", "find error"`, `kubectl breakwater reject .*`),
	in("test/change/connect_test.go", `"connect", "--server", serving.URL`, `kubectl breakwater connect.*`),
	in("test/change/replay_test.go", `"deadletters", "replay", "--all"`, `kubectl breakwater deadletters.*`),
	in("test/e2e/protection/plugin_test.go", `"-n", n.name, "permissions"`, `kubectl breakwater permissions -A`),
	in("test/e2e/protection/plugin_test.go", `append(in, "explain", "pub/web")`, `kubectl breakwater explain pub/web`),
	on(Change, `kubectl breakwater (explain|get|help|status).*`),
	in("test/e2e/walkthrough_test.go", `"patch", "changepod", "--subresource=status", batch`, `kubectl patch changepod --subresource=status .*`),
	not(embedded, system+`(logs .*|rollout restart deployment controller)`),
	on(Protection, system+`get deployments protection-webhook .*`),
	not(knative, system+`get .*ksvc.*`),

	on(Protection, `kubectl (-n <namespace> )?(get|patch|delete|wait|describe|annotate) .*\b(pub|pdfc)\b.*`),
	in("test/openkruise/webhook_test.go", `[]string{"doctor"}`, `kubectl breakwater doctor`),
	in("test/openkruise/webhook_test.go", `"../../docs/protection/openkruise.md"`, `kubectl get validatingwebhookconfiguration kruise-validating-webhook-configuration .*jq .*`),
	on(Protection, `kubectl .*(disable-cascading-deletion|generate-pub|validatingwebhookconfiguration breakwater-).*|kubectl (create|delete|rollout status) deployment.*`),
	on(Change, `kubectl (apply|annotate|auth|create|delete|describe|explain|get|label|patch|rollout|wait) .*`),
	on(Change, `kubectl -n (altershieldoperator-system|shop|<namespace>) (annotate|create|describe|get|patch) .*`),
	on(Change, `head -c 32 /dev/urandom >canary\.key`),

	// make.
	in(".ci/run", "make test", `make test`),
	in("Makefile", "hack/test.sh lint+test-alone verify test-unit test-rates+test-cost test-models+test-release+test-cluster test-controlplane test-e2e test-chaos test-upgrade",
		`make (lint|verify|test-unit|test-models|test-rates|test-cost|test-release|test-cluster|test-alone|test-controlplane|test-e2e|test-chaos|test-upgrade|up|lint verify|lint verify test-unit test-models test-rates|generate)`),
	in("test/docs/proof_test.go", `"make", "-s", "help"`, `make help`),
	in("tools/site/site_test.go", "Read(root, repository)", `make site`),
	in("Makefile", "install: apply", `make apply`),
	not(registry, `make (apply|release)\b.*`),
	not(environment, `export .*|KUBECONFIG=\$\(make -s kubeconfig\) .*`),
	not(sample, `(\.\./\.\./)?bin/cluster exec -- .*|cd test/shop`),
	not(ends, `make (bench|chaos|demo|demo-record|demo CHAPTER=(knative|protection)|down|fuzz|judge-record|kubeconfig|mutations|soak|status|vuln)|hack/fuzz\.sh .*`),
	in("test/uninstall/uninstall_test.go", "../../hack/uninstall.sh", `make uninstall|(bash )?uninstall\.sh.*`),

	// go and programs of the repository.
	in("test/conformance/main_test.go", `"-token-file", token`, `(ALTERSHIELD_TOKEN=secret )?go run ./test/conformance.*|TOKEN=secret .*test/altershielddouble/cmd &`),
	not(ends, `go test -tags bench .*`),
	in("Makefile", `$(go list ./... | grep -vE '/(test/property|judge/evaluate)$$')`, `go test ./test/conformance.*`),
	in("Makefile", `models ./test/property ./judge/evaluate`, `go test ./judge/evaluate.*`),
	in("hack/verify.sh", `go test -count 1 ./test/docs`, `go test .*./test/docs`),
	in("Makefile", `./test/e2e ./test/e2e/protection`, `go test .*./test/e2e.*`),
	in("cmd/judge/replay_test.go", `"replay", "--prometheus", url, "--new"`, `(bin/)?judge replay.*`),
	in("config/judge/600-judge.yaml", "ko://github.com/breakwater-dev/breakwater/cmd/judge", `go build -o bin/judge ./cmd/judge`),
	in("config/permission/650-centre.yaml", "ko://github.com/breakwater-dev/breakwater/cmd/permission/centre", `go build ./cmd/permission/centre`),
	in("cmd/judge/replay_test.go", `"calibrate", "--prometheus", url, "--list", list`, `(bin/)?judge calibrate.*`),
	in("cmd/judge/replay_test.go", `"explain", "--prometheus", url, "--record", file`, `(bin/)?judge explain.*`),
	in("tools/release/plugin.go", `const pluginProgram = "cmd/kubectl-breakwater"`, `go build -o kubectl-breakwater .*`),
	not(byHand, `go run ./(cmd|test/recording|test/mutation).*`),

	// Programs of others.
	not("it plays for two minutes; test/demo checks the recording, and tools/site shows it in a browser", `asciinema play .*`),
	not(release, `(cosign|sha256sum|helm|tar|mv) .*`),
	not("it makes a cluster, for which a machine with a container runtime is needed", `kind create cluster`),
	not(interactive, `git .*`),
}

// ProofOf returns the proof of a command.
func ProofOf(c Command) (Proof, bool) {
	for _, p := range Proofs {
		if p.Command.MatchString(c.Text) {
			return p, true
		}
	}
	return Proof{}, false
}
