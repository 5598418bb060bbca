package poddtest

import (
	"context"

	"github.com/alecthomas/kong"

	"podd/cmd/podd/internal/commandline"
	"podd/cmd/podd/internal/exit"
	"podd/cmd/podd/internal/iostreams"
)

// A Result contains the output and the exit code of a verb.
type Result struct {
	Out, Err string
	Code     int
}

// Execute parses words as podd parses its command line, runs the verb and returns its exit code.
// grammar is a struct of verbs for kong.
func Execute(ctx context.Context, grammar any, s iostreams.Streams, words ...string) int {
	return exit.Report(execute(ctx, grammar, s, words), s.Err)
}

// execute parses words and runs the verb. It returns the error of the verb, or an error with
// exit.Usage if words is not a valid command line.
func execute(ctx context.Context, grammar any, s iostreams.Streams, words []string) error {
	k, err := kong.New(grammar, kong.Name("podd"), kong.Writers(s.Out, s.Err))
	if err != nil {
		return err
	}
	parsed, err := commandline.Parse(k, words)
	if err != nil {
		return exit.NewError(exit.Usage, err)
	}
	verb := parsed.Selected().Target.Addr().Interface().(interface {
		Run(ctx context.Context, s iostreams.Streams) error
	})
	return verb.Run(ctx, s)
}
