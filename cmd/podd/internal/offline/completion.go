package offline

import (
	"context"
	"embed"
	"fmt"

	"podd/cmd/podd/internal/iostreams"
)

// completionScripts contains a script for each shell that calls podd __complete.
//
//go:embed completion
var completionScripts embed.FS

// CompletionCmd is the podd completion command.
type CompletionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"Shell. One of: bash, zsh, fish."`
}

// Help describes how to load the completions.
func (c *CompletionCmd) Help() string {
	return `To load completions in every session, add the line for your shell to the file on its right. In zsh, the line must follow compinit.

    source <(podd completion bash)     ~/.bashrc
    source <(podd completion zsh)      ~/.zshrc
    podd completion fish | source      ~/.config/fish/config.fish

Completion of pod names requires permission to connect to the running podd.`
}

// Run prints a script for the shell.
func (c *CompletionCmd) Run(_ context.Context, s iostreams.Streams) error {
	text, err := completionScripts.ReadFile("completion/podd." + c.Shell)
	if err != nil {
		return fmt.Errorf("printing the completion for %s: %w", c.Shell, err)
	}
	_, err = s.Out.Write(text)
	return err
}
