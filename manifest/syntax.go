package manifest

import (
	"bytes"
	"errors"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// syntaxError is why a document could not be parsed, and where.
type syntaxError struct {
	at Position
	error
}

// first is where a part's text begins: its first line that says something.
func (p part) first() Position {
	line := p.before + 1
	for at := 0; at < len(p.text); line++ {
		end := lineEnd(p.text, at)
		if s := bytes.TrimSpace(p.text[at:end]); len(s) > 0 && s[0] != '#' && string(s) != "---" {
			return Position{Line: uint32(line), Column: 1}
		}
		at = end
	}
	return Position{Line: uint32(p.before + 1), Column: 1}
}

// yamlError takes the libraries' errors apart: prefixes, line, problem.
var yamlError = regexp.MustCompile(`(?s)^(?:error converting YAML to JSON: )?yaml: (?:unmarshal errors:\s*)?(?:line (\d+): )?(.*)$`)

// grammar are the problems that the libraries' parsers find, their scanners
// find the others.
var grammar = regexp.MustCompile(`^did not find expected (key|',' or|node content|'-' indicator|<document start>)`)

// syntax places an error of a YAML or JSON library in the file.
//
// The libraries tell lines in three ways. Of a scanner's problem v3 tells where
// the broken thing begins (the open quote), which helps more than where it was
// noticed. Of a parser's problem v3 tells where the block around it begins,
// which helps nobody, while v2 tells the line before it. Neither tells of the
// first line that it is the first.
func (p part) syntax(err error) *syntaxError {
	found := yamlError.FindStringSubmatch(err.Error())
	if found == nil {
		return &syntaxError{p.first(), errors.New("parsing: " + clip(err.Error(), 300))}
	}
	message := strings.TrimSpace(found[2])
	line, _ := strconv.Atoi(found[1])
	if grammar.MatchString(message) {
		line = p.grammarLine(line) + 1
	}
	line = max(line, 1)
	if p.tabbed(line) {
		message += "; the line is indented with a tab, YAML wants spaces"
	}
	return &syntaxError{Position{Line: uint32(p.before + line)}, errors.New("parsing YAML: " + clip(message, 300))}
}

// grammarLine asks v2 for the line before a parser's problem. What v2 does not
// reach, garbage behind the document, v3 counts like that too.
func (p part) grammarLine(v3 int) int {
	_, err := yaml.YAMLToJSON(p.text)
	if err == nil {
		return v3
	}
	found := yamlError.FindStringSubmatch(err.Error())
	if found == nil || !grammar.MatchString(found[2]) {
		return v3
	}
	before, _ := strconv.Atoi(found[1]) // none is 0: the first line
	return before
}

// tabbed says that line n of the part has a tab in its indentation.
func (p part) tabbed(n int) bool {
	at := 0
	for ; n > 1 && at < len(p.text); n-- {
		at = lineEnd(p.text, at)
	}
	line := p.text[at:lineEnd(p.text, at)]
	return bytes.ContainsRune(line[:len(line)-len(bytes.TrimLeft(line, " \t"))], '\t')
}
