package offline

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"podd/cmd/podd/internal/check"
	"podd/cmd/podd/internal/check/inspect"
	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/exit"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/printer"
)

// CheckCmd is the podd check command. It accepts the flags of podd run in order to check the
// runtime, the directories and the ports that podd run would use. If podd is running, CheckCmd uses
// the directories, node name and runtime of the running podd unless the flags set them.
type CheckCmd struct {
	config.Flags
	Output string `short:"o" enum:"text,json,yaml" default:"text" placeholder:"FORMAT" help:"Output format. One of: text, json, yaml."`
}

// KubeletFlags returns the flags that CheckCmd shares with podd run. Package main adds the flags
// that only the kubelet has.
func (c *CheckCmd) KubeletFlags() *config.Flags { return &c.Flags }

// Help describes the exit code.
func (c *CheckCmd) Help() string {
	return `This verb has the flags of "podd run", and checks the host for a podd with these flags. If podd is running, its root directory, run directory, node name and runtime are the defaults of these flags. "podd check" prints the cause and the remedy of each failure and each warning. It changes nothing.

The exit code is 0 if no check failed, 1 if a check failed, and 2 if the command line is invalid. Warnings do not change the exit code.`
}

// Run makes the checks and prints their results. If a check failed, it returns an error with exit
// code 1.
func (c *CheckCmd) Run(ctx context.Context, s iostreams.Streams) error {
	facts, err := config.ReadHostFacts()
	if err != nil {
		return err
	}
	o := inspect.Options{}
	cfg, warnings, err := config.Load(c.Flags, facts)
	if o.ConfigWarnings, o.ConfigErr = warnings, err; err == nil {
		o.Config = &cfg
	}
	if o.Config != nil && os.Geteuid() == 0 {
		fetchRunningView(ctx, &c.Flags, o.Config, s.Err)
	}
	report := check.Run(inspect.ReadFacts(ctx, o))
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := printReport(s.Out, c.Output, report); err != nil {
		return err
	}
	if report.Outcome == check.Failed {
		return exit.NewError(exit.Failed, nil)
	}
	return nil
}

// printReport prints a report as text, JSON or YAML.
func printReport(w io.Writer, format string, report check.Report) error {
	if format != "text" {
		return printer.WriteData(w, format, report)
	}
	_, err := io.WriteString(w, reportText(report))
	return err
}

// reportText returns a table with a line for each check, the failures and the warnings with their
// remedies, and a summary.
func reportText(report check.Report) string {
	rows := [][]string{{"CHECK", "RESULT", "DETAIL"}}
	for _, r := range report.Checks {
		rows = append(rows, []string{r.Check, string(r.Outcome), printer.Escape(r.Detail)})
	}
	var b strings.Builder
	b.WriteString(new(printer.Table).FormatLines(rows))
	for _, severity := range []struct {
		outcome check.Outcome
		word    string
	}{{check.Failed, "error"}, {check.Warning, "warning"}} {
		for _, r := range report.Checks {
			for _, p := range r.Problems {
				if p.Outcome == severity.outcome {
					fmt.Fprintf(&b, "%s: %s: %s\n  remedy: %s\n", severity.word, r.Check, printer.Escape(p.Cause), printer.Escape(p.Remedy))
				}
			}
		}
	}
	fmt.Fprintf(&b, "%s: %d failed, %s\n", printer.FormatCount(len(report.Checks), "check"),
		report.Count(check.Failed), printer.FormatCount(report.Count(check.Warning), "warning"))
	return b.String()
}
