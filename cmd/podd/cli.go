package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"podd/cmd/podd/internal/config"
)

// verbs is the grammar: one line a verb, in the order of podd help. Each is
// a verb.
type verbs struct {
	Run         RunCmd         `cmd:"" help:"Run the pods of the sources, and follow them."`
	Ps          PsCmd          `cmd:"" help:"List the pods and what is to be mended."`
	Why         WhyCmd         `cmd:"" help:"Tell what a pod does and why."`
	Wait        WaitCmd        `cmd:"" help:"Wait until pods are ready, or a file's content is."`
	Get         GetCmd         `cmd:"" help:"List pods, nodes, secrets and others as kubectl get does."`
	Describe    DescribeCmd    `cmd:"" help:"Tell all that is known of a pod or of the node, as kubectl describe does."`
	Top         TopCmd         `cmd:"" help:"List what pods or the node use, as kubectl top does."`
	Events      EventsCmd      `cmd:"" help:"List what happened to pods and to the node."`
	Logs        LogsCmd        `cmd:"" help:"Print what a container wrote."`
	Exec        ExecCmd        `cmd:"" help:"Run a command in a container."`
	Attach      AttachCmd      `cmd:"" help:"Take part in what a container reads and writes."`
	Debug       DebugCmd       `cmd:"" help:"Add a container to a pod that runs, to look around in it."`
	Cp          CpCmd          `cmd:"" help:"Copy files into a container, or out of it."`
	PortForward PortForwardCmd `cmd:"" help:"Have ports of this machine lead to ports of a pod."`
	Restart     RestartCmd     `cmd:"" help:"Start a pod's containers again."`
	Down        DownCmd        `cmd:"" help:"End all pods, with their grace; before a kubelet is to have them, too."`
	Shutdown    ShutdownCmd    `cmd:"" help:"End all pods since the machine goes down, in the order of their priority."`
	Plan        PlanCmd        `cmd:"" help:"Tell what would be done now, and do nothing."`
	Volume      VolumeCmd      `cmd:"" help:"List the volumes of claims, or remove some with their data."`
	Kubeconfig  KubeconfigCmd  `cmd:"" help:"Print root's credential for podd's own API and the kubelet's, good for a year; for kubectl --kubeconfig."`
	Validate    ValidateCmd    `cmd:"" help:"Check manifests without running anything."`
	Completion  CompletionCmd  `cmd:"" help:"Print what a shell needs to complete podd's words."`
	Version     VersionCmd     `cmd:"" help:"Tell the version."`
}

// execute understands a command line, args[0] being the program, and runs its
// verb. Help and versions go to s.Out.
func execute(ctx context.Context, args []string, s Streams) error {
	program, words := filepath.Base(args[0]), args[1:]
	k, err := newParser(&verbs{}, s)
	if err != nil {
		return err
	}
	if len(words) > 0 && words[0] == completeVerb {
		return completeWord(ctx, k.Model, words[1:], s)
	}
	words = helpFirst(words)
	switch {
	case len(words) == 0:
	case words[0] == "--help", words[0] == "-h":
		return printUsage(s.Out, k.Model)
	case strings.HasPrefix(words[0], "--version"):
		return printVersion(s.Out, program, words[0])
	}
	if flag := versionFlag(words); flag != "" {
		return printVersion(s.Out, program, flag)
	}
	chosen, err := parse(k, words)
	if err != nil {
		return exitWith(usageCode(words), err)
	}
	return chosen.Run(ctx, s)
}

// verb is what a command line asks for, with its flags. It does not hold the
// grammar, half a megabyte, which nobody needs while podd runs.
type verb interface {
	Run(ctx context.Context, s Streams) error
}

// versionFlag is a --version behind a verb or other flags, "" for none; as with
// the kubelet it wins over them.
func versionFlag(words []string) string {
	for _, w := range words {
		switch {
		case w == "--":
			return ""
		case w == "--version", strings.HasPrefix(w, "--version="):
			return w
		}
	}
	return ""
}

// newParser makes the parser of a grammar.
func newParser(grammar any, s Streams) (*kong.Kong, error) {
	k, err := kong.New(grammar, kong.Name("podd"), kong.Writers(s.Out, s.Err),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}))
	if err != nil {
		return nil, fmt.Errorf("building the command line's grammar: %w", err)
	}
	return k, nil
}

// helpFirst makes "help" and "help VERB" of what git and kubectl users type.
func helpFirst(words []string) []string {
	if len(words) == 0 || words[0] != "help" {
		return words
	}
	if len(words) == 1 {
		return []string{"--help"}
	}
	return []string{words[1], "--help"}
}

// parse finds the verb, lets package config ready its flags, and leaves the
// rest to kong. The kubelet's flags are for the verbs that run or plan.
func parse(k *kong.Kong, words []string) (verb, error) {
	if len(words) == 0 || strings.HasPrefix(words[0], "-") {
		words = append([]string{"run"}, words...)
	}
	node := findVerb(k.Model, words[0])
	if node == nil {
		return nil, unknownVerb(k.Model, words[0])
	}
	alone, names := map[string]bool{}, []string(nil)
	for _, group := range node.AllFlags(false) {
		for _, f := range group {
			alone[f.Name] = f.IsBool()
			names = append(names, f.Name)
		}
	}
	served := func(name string) (bool, bool) { a, ok := alone[name]; return a, ok }
	rest, known, err := config.Args(words[1:], served, names)
	if err != nil {
		return nil, err
	}
	chosen := node.Target.Addr().Interface()
	takes, ok := chosen.(interface{ kubelet() *config.Flags })
	if !ok && len(known) > 0 {
		return nil, fmt.Errorf("--%s is no flag of podd %s, only of podd run", known[0].Name, node.Name)
	}
	if _, err := k.Parse(append(words[:1:1], rest...)); err != nil {
		return nil, err
	}
	if ok {
		takes.kubelet().Known = known
	}
	return chosen.(verb), nil
}

func findVerb(app *kong.Application, name string) *kong.Node {
	i := slices.IndexFunc(app.Children, func(n *kong.Node) bool { return n.Name == name })
	if i < 0 {
		return nil
	}
	return app.Children[i]
}

func unknownVerb(app *kong.Application, word string) error {
	var names []string
	for _, n := range app.Children {
		names = append(names, n.Name)
	}
	if _, err := os.Stat(word); err == nil {
		return fmt.Errorf("%q is a file, not a verb; podd run --runonce %s runs it once", word, word)
	}
	if near := config.Nearest(word, names); near != "" {
		return fmt.Errorf("unknown verb %q; did you mean %q?", word, near)
	}
	return fmt.Errorf("unknown verb %q; podd help lists them", word)
}

// usageCode keeps a mistyped --runonce from looking like a container's code.
func usageCode(words []string) int {
	for _, w := range words {
		if name, _, _ := strings.Cut(w, "="); name == "--runonce" {
			return codeOwn
		}
	}
	return codeUsage
}

// printUsage is podd help: what podd is, the verbs, two ways to begin.
func printUsage(w io.Writer, app *kong.Application) error {
	var b strings.Builder
	b.WriteString("podd runs Kubernetes pods from manifest files and URLs on a CRI runtime.\n\n")
	b.WriteString("  podd --pod-manifest-path DIR       run the pods in DIR and follow its changes\n")
	b.WriteString("  podd run --runonce FILE            run pods to completion, exit with their code\n\n")
	for _, n := range app.Children {
		fmt.Fprintf(&b, "  %-12s %s\n", n.Name, n.Help)
	}
	b.WriteString("\npodd VERB --help tells its flags. podd alone is podd run.\n")
	_, err := io.WriteString(w, b.String())
	return err
}
