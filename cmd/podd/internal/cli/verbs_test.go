package cli

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/poddtest"
	"podd/runtime/runtimetest/golden"
)

// verbs is a grammar with the verbs of this package.
type verbs struct {
	Ps          PsCmd          `cmd:""`
	Why         WhyCmd         `cmd:""`
	Wait        WaitCmd        `cmd:""`
	Get         GetCmd         `cmd:""`
	Describe    DescribeCmd    `cmd:""`
	Top         TopCmd         `cmd:""`
	Events      EventsCmd      `cmd:""`
	Logs        LogsCmd        `cmd:""`
	Exec        ExecCmd        `cmd:""`
	Attach      AttachCmd      `cmd:""`
	Debug       DebugCmd       `cmd:""`
	Cp          CpCmd          `cmd:""`
	PortForward PortForwardCmd `cmd:""`
	Restart     RestartCmd     `cmd:""`
	Down        DownCmd        `cmd:""`
	Shutdown    ShutdownCmd    `cmd:""`
	Accept      AcceptCmd      `cmd:""`
	Orphans     OrphansCmd     `cmd:""`
	Images      ImagesCmd      `cmd:""`
	Kubeconfig  KubeconfigCmd  `cmd:""`
}

// podd runs the verb words[0] with the other words as arguments, while f is the running podd.
func podd(t *testing.T, f *poddtest.Podd, words ...string) poddtest.Result {
	t.Helper()
	return poddVerb(t.Context(), append([]string{words[0], "--run-dir", f.Dir}, words[1:]...)...)
}

// poddVerb runs podd with the arguments words and returns its output and exit code.
func poddVerb(ctx context.Context, words ...string) poddtest.Result {
	var out, stderr bytes.Buffer
	code := executeVerb(ctx, iostreams.Streams{In: strings.NewReader(""), Out: &out, Err: &stderr}, words...)
	return poddtest.Result{Out: out.String(), Err: stderr.String(), Code: code}
}

// executeVerb runs podd with the streams s and the arguments words. It returns the exit code.
func executeVerb(ctx context.Context, s iostreams.Streams, words ...string) int {
	return poddtest.Execute(ctx, &verbs{}, s, words...)
}

// compareGolden compares got with the file testdata/verbs/NAME.txt of the repository.
func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	golden.Compare(t, filepath.Join("../../../../testdata/verbs", name+".txt"), got)
}
