package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"podd/cmd/podd/docs"
	"podd/cmd/podd/internal/cli"
	"podd/cmd/podd/internal/commandline"
	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/exit"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/offline"
	"podd/manifest/wording"
)

// verbs is the grammar of the command line. Each field is a verb. podd help prints the verbs in
// the order of the fields.
type verbs struct {
	Run         runCmd                `cmd:"" help:"Run pods from manifest files and URLs, and apply changes to them."`
	Ps          cli.PsCmd             `cmd:"" help:"List pods and their problems."`
	Why         cli.WhyCmd            `cmd:"" help:"Explain the state of pods and manifests."`
	Wait        cli.WaitCmd           `cmd:"" help:"Wait for a specific condition on pods or manifests."`
	Get         cli.GetCmd            `cmd:"" help:"Display one or many resources."`
	Describe    cli.DescribeCmd       `cmd:"" help:"Show details of pods or of the node."`
	Top         cli.TopCmd            `cmd:"" help:"Display resource (CPU/memory) usage of pods or of the node."`
	Events      cli.EventsCmd         `cmd:"" help:"List events."`
	Logs        cli.LogsCmd           `cmd:"" help:"Print the logs for a container in a pod."`
	Exec        cli.ExecCmd           `cmd:"" help:"Execute a command in a container."`
	Attach      cli.AttachCmd         `cmd:"" help:"Attach to a running container."`
	Debug       cli.DebugCmd          `cmd:"" help:"Add an ephemeral container for debugging to a running pod."`
	Cp          cli.CpCmd             `cmd:"" help:"Copy files and directories to and from containers."`
	PortForward cli.PortForwardCmd    `cmd:"" help:"Forward one or more local ports to a pod."`
	Restart     cli.RestartCmd        `cmd:"" help:"Restart the containers of a pod."`
	Down        cli.DownCmd           `cmd:"" help:"Stop all pods, for example before a kubelet takes over."`
	Shutdown    cli.ShutdownCmd       `cmd:"" help:"Stop all pods for a node shutdown, in order of priority."`
	Accept      cli.AcceptCmd         `cmd:"" help:"Accept a change of the host that podd reports as a problem."`
	Plan        offline.PlanCmd       `cmd:"" help:"Show what podd run would do now, without doing it."`
	Volume      offline.VolumeCmd     `cmd:"" help:"List or remove the volumes of persistent volume claims."`
	Orphans     cli.OrphansCmd        `cmd:"" help:"List or remove orphaned pod directories."`
	Images      cli.ImagesCmd         `cmd:"" help:"List or remove images, and show what podd removes by itself."`
	Kubeconfig  cli.KubeconfigCmd     `cmd:"" help:"Print a kubeconfig with root's credential for this node's APIs, or revoke all such credentials."`
	Check       offline.CheckCmd      `cmd:"" help:"Check the prerequisites of podd on this host."`
	Validate    offline.ValidateCmd   `cmd:"" help:"Validate manifests without running them."`
	Completion  offline.CompletionCmd `cmd:"" help:"Output shell completion code for the specified shell (bash, zsh or fish)."`
	Version     versionCmd            `cmd:"" help:"Print the version."`
}

// newVerbs returns the grammar. Only the version that podd validate prints is set; parse sets the
// other fields from the command line.
func newVerbs() *verbs { return &verbs{Validate: offline.ValidateCmd{Version: thisVersion().Version}} }

// only returns a pointer to a struct with only the field of the verb name, or v if there is no such
// verb. kong builds the grammar of one verb in less time and memory than the grammar of all verbs.
func (v *verbs) only(name string) any {
	all := reflect.ValueOf(v).Elem()
	field, found := all.Type().FieldByNameFunc(func(field string) bool {
		return strings.EqualFold(field, strings.ReplaceAll(name, "-", ""))
	})
	if !found {
		return v
	}
	one := reflect.New(reflect.StructOf([]reflect.StructField{field}))
	one.Elem().Field(0).Set(all.FieldByIndex(field.Index))
	return one.Interface()
}

// completeVerb is the hidden verb that a shell runs for completion. Its arguments are the words
// after "podd" on the command line. The last word may be incomplete.
const completeVerb = "__complete"

// completionTimeout is the maximum time for which a shell waits for completions after a key press.
const completionTimeout = time.Second

// execute parses a command line and runs the verb. args[0] is the program. Help and versions are
// printed to s.Out.
func execute(ctx context.Context, args []string, s iostreams.Streams) error {
	program, words := filepath.Base(args[0]), args[1:]
	if len(words) > 0 && words[0] == completeVerb {
		return complete(ctx, words[1:], s)
	}
	if page, ok := helpPage(words); ok {
		_, err := io.WriteString(s.Out, page)
		return err
	}
	words = normalizeHelp(words)
	switch {
	case len(words) == 0:
	case words[0] == "--help", words[0] == "-h":
		return printUsage(s)
	case strings.HasPrefix(words[0], "--version"):
		return printVersion(s.Out, program, words[0])
	}
	if flag := versionFlag(words); flag != "" {
		return printVersion(s.Out, program, flag)
	}
	words = addVerb(words)
	k, err := newParser(newVerbs().only(words[0]), s)
	if err != nil {
		return err
	}
	chosen, err := parse(k, words)
	if err != nil {
		return exit.NewError(usageExitCode(words), err)
	}
	return chosen.Run(ctx, s)
}

// complete prints the completions of the last of words.
func complete(ctx context.Context, words []string, s iostreams.Streams) error {
	k, err := newParser(newVerbs(), s)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	return cli.Complete(ctx, k.Model, words, s.Out)
}

// addVerb returns the words of a command line with the verb run in front of them, unless they start
// with a verb.
func addVerb(words []string) []string {
	if len(words) == 0 || strings.HasPrefix(words[0], "-") {
		return append([]string{"run"}, words...)
	}
	return words
}

// A verb is a parsed command. It contains no reference to the grammar, so that the garbage
// collector can free the grammar (half a megabyte) while podd runs.
type verb interface {
	Run(ctx context.Context, s iostreams.Streams) error
}

// versionFlag returns the first --version flag of a command line, or "" if there is none.
// As in the kubelet, this flag takes precedence over a verb and all other flags.
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

// newParser returns a parser of the command lines that grammar describes.
func newParser(grammar any, s iostreams.Streams) (*kong.Kong, error) {
	k, err := kong.New(grammar, kong.Name("podd"), kong.Writers(s.Out, s.Err),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}))
	if err != nil {
		return nil, fmt.Errorf("building the command-line grammar: %w", err)
	}
	return k, nil
}

// helpPage returns the page that the command "help TOPIC" prints. ok is false if words is not such
// a command, or if there is no page TOPIC.
func helpPage(words []string) (page string, ok bool) {
	if len(words) != 2 || words[0] != "help" {
		return "", false
	}
	return docs.Page(words[1])
}

// normalizeHelp replaces "help" by "--help", and "help VERB" by "VERB --help". git and kubectl
// accept both forms, too.
func normalizeHelp(words []string) []string {
	if len(words) == 0 || words[0] != "help" {
		return words
	}
	if len(words) == 1 {
		return []string{"--help"}
	}
	return []string{words[1], "--help"}
}

// parse returns the verb words[0] with its flags and arguments. kong parses the flags of
// the verb. Package config parses the flags that only the kubelet has. Only verbs with a method
// KubeletFlags accept flags that only the kubelet has.
func parse(k *kong.Kong, words []string) (verb, error) {
	node := cli.FindVerb(k.Model, words[0])
	if node == nil {
		return nil, unknownVerbError(k.Model, words[0])
	}
	isBool, names := map[string]bool{}, []string(nil)
	for _, group := range node.AllFlags(false) {
		for _, f := range group {
			isBool[f.Name] = f.IsBool()
			if f.Short != 0 {
				isBool["-"+string(f.Short)] = f.IsBool()
			}
			names = append(names, f.Name)
		}
	}
	lookupFlag := func(name string) (noValue, ok bool) { noValue, ok = isBool[name]; return noValue, ok }
	kongArgs, unsupported, err := config.NormalizeArgs(words[1:], lookupFlag, names)
	if err != nil {
		return nil, err
	}
	command := node.Target.Addr().Interface()
	flagVerb, hasFlags := command.(interface{ KubeletFlags() *config.Flags })
	if !hasFlags && len(unsupported) > 0 {
		return nil, fmt.Errorf("\"podd %s\" has no flag --%s; only verbs that read the configuration have this flag, such as \"podd run\" and \"podd plan\"", node.Name, unsupported[0].Name)
	}
	kongContext, err := commandline.Parse(k, append(words[:1:1], kongArgs...))
	if errors.Is(err, commandline.ErrHelp) {
		return verbHelp{kongContext}, nil
	}
	if err != nil {
		return nil, explainParseError(err, node.Name)
	}
	if hasFlags {
		flagVerb.KubeletFlags().Unsupported = unsupported
	}
	return command.(verb), nil
}

// explainParseError returns the error for users after commandline.Parse has failed with err.
func explainParseError(err error, verbName string) error {
	if missingErr, ok := errors.AsType[commandline.MissingArgumentsError](err); ok {
		return fmt.Errorf("%s: missing %s; see \"podd %[1]s --help\"", verbName, missingErr.Arguments)
	}
	if choiceErr, ok := errors.AsType[commandline.InvalidChoiceError](err); ok {
		choices := slices.DeleteFunc(choiceErr.Choices, func(choice string) bool { return choice == "" })
		return fmt.Errorf("%s: unknown value %q; must be one of %s", choiceErr.Name, choiceErr.Value, strings.Join(choices, ", "))
	}
	return err
}

// verbHelp is the verb that prints the help for "podd VERB --help".
type verbHelp struct{ parsed *kong.Context }

// Run prints the help of the verb.
func (h verbHelp) Run(context.Context, iostreams.Streams) error { return h.parsed.PrintUsage(false) }

// unknownVerbError returns an error for a word that is not a verb. It suggests the most similar
// verb or, if the word is a file, the flags that run the file.
func unknownVerbError(app *kong.Application, word string) error {
	var names []string
	for _, n := range app.Children {
		names = append(names, n.Name)
	}
	if _, err := os.Stat(word); err == nil {
		return fmt.Errorf("%q is a file, not a verb; to run the file once, use \"podd run --runonce %s\"", word, word)
	}
	if near := wording.FindClosest(word, names); near != "" {
		return fmt.Errorf("unknown verb %q; did you mean %q?", word, near)
	}
	return fmt.Errorf("unknown verb %q; \"podd help\" lists the verbs", word)
}

// usageExitCode returns the exit code of a usage error. With --runonce it is exit.Internal,
// because a container may exit with the value of exit.Usage.
func usageExitCode(words []string) int {
	for _, w := range words {
		if name, _, _ := strings.Cut(w, "="); name == "--runonce" {
			return exit.Internal
		}
	}
	return exit.Usage
}

// printUsage prints the text of "podd help".
func printUsage(s iostreams.Streams) error {
	k, err := newParser(newVerbs(), s)
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("podd runs Kubernetes pods from manifest files and URLs on a CRI runtime.\n\n")
	b.WriteString("  podd --pod-manifest-path DIR       run the pods in DIR and apply its changes\n")
	b.WriteString("  podd run --runonce FILE            run pods to completion and exit with their exit code\n\n")
	for _, n := range k.Model.Children {
		fmt.Fprintf(&b, "  %-12s %s\n", n.Name, n.Help)
	}
	b.WriteString("\nTopics:\n")
	for _, t := range docs.Topics() {
		fmt.Fprintf(&b, "  %-21s %s\n", t.Name, t.Title) // 21 is the length of dynamic-configuration
	}
	b.WriteString("\nUse \"podd help VERB\" for the flags of a verb and \"podd help TOPIC\" for a page. Without a verb, podd does the same as \"podd run\".\n")
	_, err = io.WriteString(s.Out, b.String())
	return err
}
