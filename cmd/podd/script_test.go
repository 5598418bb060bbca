package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/exit"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/offline"
	"podd/runtime/runtimetest/golden"
)

// TestMain lets the scripts of TestScripts call podd as "podd" and "kubelet". They can also call the
// program "podd-config", which parses its command line like "podd run" and prints the resulting
// Config.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"podd":        main,
		"kubelet":     main,
		"podd-config": func() { os.Exit(exit.Report(printConfig(os.Args[1:]), os.Stderr)) },
	})
}

// streams returns the standard streams of this process.
func streams() iostreams.Streams {
	return iostreams.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
}

// TestScripts runs the scripts in testdata/script of the repository. In a script, $WEB is the URL of
// an HTTP server that serves the files in the working directory of the script.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "../../testdata/script",
		UpdateScripts:       golden.IsUpdate(),
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			web := httptest.NewServer(http.FileServer(http.Dir(e.WorkDir)))
			e.Defer(web.Close)
			e.Setenv("WEB", web.URL)
			return nil
		},
	})
}

// configVerbs is the grammar of podd-config. Its only verb has the flags of "podd run".
type configVerbs struct {
	Run configCmd `cmd:""`
}

type configCmd struct{ runCmd }

// Run prints the Config that results from the command line.
func (c *configCmd) Run(_ context.Context, s iostreams.Streams) error {
	cfg, warnings, err := config.Load(c.Flags, config.HostFacts{Program: "podd", Hostname: "node-1", UsesCgroupV2: true})
	for _, w := range warnings {
		fmt.Fprintln(s.Err, w)
	}
	if err != nil {
		return err
	}
	e := json.NewEncoder(s.Out)
	e.SetIndent("", " ")
	return e.Encode(struct {
		config.Config
		Files, Env, EnvFile []string
		Timeout, Report     string
	}{cfg, c.Files, c.Env, c.EnvFile, c.Timeout.String(), c.Report})
}

// printConfig is the program podd-config.
func printConfig(args []string) error {
	k, err := newParser(&configVerbs{}, streams())
	if err != nil {
		return err
	}
	chosen, err := parse(k, addVerb(args))
	if err != nil {
		return exit.NewError(usageExitCode(args), err)
	}
	return chosen.Run(context.Background(), streams())
}

// TestVerbs_Only checks that only returns the grammar of a single verb for the name of each verb, and
// the grammar of all verbs for other words.
func TestVerbs_Only(t *testing.T) {
	names := func(word string) (names []string) {
		k, err := newParser((&verbs{}).only(word), streams())
		if err != nil {
			t.Fatal(err)
		}
		for _, node := range k.Model.Children {
			names = append(names, node.Name)
		}
		return names
	}
	all := names("")
	for _, name := range all {
		if got := names(name); !slices.Equal(got, []string{name}) {
			t.Errorf("verbs for %q: got %q, want only this verb", name, got)
		}
	}
	for _, word := range []string{"", "r", "web.yaml", "ports"} {
		if got := names(word); len(got) != reflect.TypeFor[verbs]().NumField() {
			t.Errorf("verbs for %q, which is not a verb: got %q, want all verbs", word, got)
		}
	}
	if v := (&verbs{Validate: offline.ValidateCmd{Version: "v1"}}).only("validate"); reflect.ValueOf(v).Elem().Field(0).Interface().(offline.ValidateCmd).Version != "v1" {
		t.Error("the verb validate has lost its version")
	}
}

// TestVerbs checks that every verb of the grammar implements the interface verb.
func TestVerbs(t *testing.T) {
	k, err := newParser(&verbs{}, streams())
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range k.Model.Children {
		if _, ok := node.Target.Addr().Interface().(verb); !ok {
			t.Errorf("podd %s: the type %s does not implement the interface verb", node.Name, node.Target.Type())
		}
	}
}
