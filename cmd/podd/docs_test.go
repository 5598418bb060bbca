package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"podd/cmd/podd/docs"
	"podd/cmd/podd/internal/config"
)

// A page is the README or a page of podd help.
type page struct{ name, text string }

// allPages returns the README and all pages of podd help.
func allPages(t *testing.T) []page {
	t.Helper()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	pages := []page{{"README", string(readme)}}
	for _, topic := range docs.Topics() {
		text, ok := docs.Page(topic.Name)
		if !ok || !strings.HasPrefix(text, "# ") || topic.Title == "" {
			t.Errorf("%s.md does not start with a title", topic.Name)
		}
		pages = append(pages, page{topic.Name, text})
	}
	return pages
}

// codeBlocks returns the indented blocks of a page, without the indentation.
func codeBlocks(text string) []string {
	var all []string
	var block strings.Builder
	for line := range strings.Lines(text + "\nend\n") {
		code, indented := strings.CutPrefix(line, "    ")
		switch blank := strings.TrimSpace(line) == ""; {
		case indented:
			block.WriteString(code)
		case blank && block.Len() > 0:
			block.WriteString("\n")
		case block.Len() > 0:
			all = append(all, strings.TrimRight(block.String(), "\n")+"\n")
			block.Reset()
		}
	}
	return all
}

// commandStart matches the beginning of a podd command in a line of a shell script or systemd unit.
var commandStart = regexp.MustCompile(`(?:^|^\$ |&& |\| |ExecStart=/usr/|sudo |exec /usr/)(?:bin/)?podd `)

// commandEnd matches the text after the words of a command: a shell operator such as && and the
// following command, a comment or a redirection.
var commandEnd = regexp.MustCompile(` (?:&&|\|\|?|[;#]) .*| && .*|  #.*| >.*`)

// poddCommands returns the words of each podd command in a shell script or systemd unit.
func poddCommands(block string) [][]string {
	var all [][]string
	for line := range strings.Lines(strings.ReplaceAll(block, "\\\n", " ")) {
		for _, at := range commandStart.FindAllStringIndex(line, -1) {
			words := strings.Fields(commandEnd.ReplaceAllString(line[at[1]:], ""))
			all = append(all, words)
		}
	}
	return all
}

// inlineCommand matches a podd command with arguments in a sentence.
var inlineCommand = regexp.MustCompile("`podd ([^`]+ [^`]+)`")

// inlineCommands returns the words of each podd command in the sentences of a page. It omits the
// commands "podd help PAGE", because TestPages_References checks them.
func inlineCommands(text string) [][]string {
	var all [][]string
	for _, m := range inlineCommand.FindAllStringSubmatch(text, -1) {
		if words := strings.Fields(m[1]); words[0] != "help" {
			all = append(all, words)
		}
	}
	return all
}

// TestPages_Commands checks that every podd command in the README and in the pages is valid.
func TestPages_Commands(t *testing.T) {
	n := 0
	for _, p := range allPages(t) {
		commands := inlineCommands(p.text)
		for _, block := range codeBlocks(p.text) {
			commands = append(commands, poddCommands(block)...)
		}
		for _, words := range commands {
			n++
			if _, isPage := helpPage(words); isPage {
				continue
			}
			k, err := newParser(newVerbs(), streams())
			if err == nil {
				_, err = parse(k, addVerb(normalizeHelp(words)))
			}
			if err != nil {
				t.Errorf("%s: podd %s: %v", p.name, strings.Join(words, " "), err)
			}
		}
	}
	if n < 40 {
		t.Errorf("found %d commands in all pages, want at least 40", n)
	}
}

// TestPages_Manifests checks that every manifest in the README and in the pages is valid. It ignores
// parts of manifests, which do not contain apiVersion.
func TestPages_Manifests(t *testing.T) {
	n := 0
	for _, p := range allPages(t) {
		for _, block := range codeBlocks(p.text) {
			at := strings.Index(block, "apiVersion: v1\n")
			if at < 0 {
				continue
			}
			n++
			text, _, _ := strings.Cut(block[at:], "EOF\n")
			file := filepath.Join(t.TempDir(), "example.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if r := poddVerb(t.Context(), "validate", "--strict", file); r.Code != 0 || strings.Contains(r.Out+r.Err, "warning:") {
				t.Errorf("%s: validating a manifest: got exit code %d, stdout\n%s\nstderr\n%s\nwant exit code 0 and no warnings for the manifest\n%s", p.name, r.Code, r.Out, r.Err, text)
			}
		}
	}
	if n < 3 {
		t.Errorf("found %d manifests in all pages, want at least 3", n)
	}
}

// TestPages_Configuration checks that every configuration file in the README and in the pages is
// valid, and that podd ignores none of its fields (it would print a warning).
func TestPages_Configuration(t *testing.T) {
	n := 0
	for _, p := range allPages(t) {
		for _, block := range codeBlocks(p.text) {
			if !strings.Contains(block, "kind: KubeletConfiguration\n") {
				continue
			}
			n++
			file := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(file, []byte(block), 0o600); err != nil {
				t.Fatal(err)
			}
			flags := config.Flags{FileFlags: config.FileFlags{Config: file}}
			_, warnings, err := config.Load(flags, config.HostFacts{Program: "podd", Hostname: "node-1", UsesCgroupV2: true})
			if err != nil || len(warnings) > 0 {
				t.Errorf("%s: loading a configuration file: got warnings %v, error %v; want none", p.name, warnings, err)
			}
		}
	}
	if n < 1 {
		t.Errorf("found %d configuration files in all pages, want at least 1", n)
	}
}

// TestPages_Help checks that podd help lists and prints every page.
func TestPages_Help(t *testing.T) {
	list := poddVerb(t.Context(), "help").Out
	for _, topic := range docs.Topics() {
		want, _ := docs.Page(topic.Name)
		if got := poddVerb(t.Context(), "help", topic.Name); got.Code != 0 || got.Out != want || got.Err != "" {
			t.Errorf("podd help %s: got exit code %d, stderr %q, stdout\n%s\nwant exit code 0, no stderr, and the page on stdout", topic.Name, got.Code, got.Err, got.Out)
		}
		if !strings.Contains(list, topic.Name) || !strings.Contains(list, topic.Title) {
			t.Errorf("podd help does not list the page %s with its title %q", topic.Name, topic.Title)
		}
	}
}

// TestPages_References checks that a page refers only to pages and files that exist. Links to other
// hosts are not allowed, because users also read the pages on nodes without a network.
func TestPages_References(t *testing.T) {
	help := regexp.MustCompile("`podd help ([a-z-]+)`")
	link := regexp.MustCompile(`\]\(([^)]+)\)`)
	var verbs []string
	k, err := newParser(newVerbs(), streams())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range k.Model.Children {
		verbs = append(verbs, n.Name)
	}
	for _, p := range allPages(t) {
		for _, m := range help.FindAllStringSubmatch(p.text, -1) {
			if _, ok := docs.Page(m[1]); !ok && !slices.Contains(verbs, m[1]) {
				t.Errorf("%s refers to podd help %s, but podd has no page and no verb with this name", p.name, m[1])
			}
		}
		dir := "docs"
		if p.name == "README" {
			dir = "../.."
		}
		for _, m := range link.FindAllStringSubmatch(p.text, -1) {
			if _, err := os.Stat(filepath.Join(dir, m[1])); err != nil {
				t.Errorf("%s contains a link that is not a file: %v", p.name, err)
			}
		}
	}
	for _, topic := range docs.Topics() {
		if slices.Contains(verbs, topic.Name) {
			t.Errorf("podd help %s is ambiguous, because there are a verb and a page with this name", topic.Name)
		}
	}
}
