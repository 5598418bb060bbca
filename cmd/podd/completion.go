package main

import (
	"context"
	"embed"
	"fmt"
)

// completions are what each shell has to know to ask podd __complete.
//
//go:embed completion
var completions embed.FS

// CompletionCmd is podd completion.
type CompletionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help is the verb's longer help.
func (c *CompletionCmd) Help() string {
	return "In ~/.bashrc: source <(podd completion bash). In ~/.zshrc, after compinit: source <(podd completion zsh). In ~/.config/fish/config.fish: podd completion fish | source. Names of pods come from the podd that runs, if the user may ask it."
}

// Run prints a script for the shell.
func (c *CompletionCmd) Run(_ context.Context, s Streams) error {
	text, err := completions.ReadFile("completion/podd." + c.Shell)
	if err != nil {
		return fmt.Errorf("printing the completion for %s: %w", c.Shell, err)
	}
	_, err = s.Out.Write(text)
	return err
}
