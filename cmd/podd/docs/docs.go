// Package docs contains the pages that "podd help TOPIC" prints. The README links to these pages.
package docs

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

//go:embed *.md
var pages embed.FS

// Page returns the page about a topic in Markdown. ok is false if there is no such page.
func Page(topic string) (page string, ok bool) {
	text, err := pages.ReadFile(topic + ".md")
	return string(text), err == nil
}

// A Topic is a page: its name in "podd help NAME", and its title.
type Topic struct{ Name, Title string }

// Topics returns all pages, sorted by name.
func Topics() []Topic {
	entries, err := fs.ReadDir(pages, ".")
	if err != nil {
		panic(fmt.Sprintf("reading the embedded pages: %v", err)) // impossible, because the pages are part of the binary
	}
	var topics []Topic
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), path.Ext(e.Name()))
		text, _ := Page(name)
		title, _, _ := strings.Cut(strings.TrimPrefix(text, "# "), "\n")
		topics = append(topics, Topic{name, title})
	}
	return topics
}
