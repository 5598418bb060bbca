package document

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"podd/manifest"
	"podd/manifest/lazyregexp"
	"podd/manifest/wording"
)

// A SyntaxError is the reason why a document could not be parsed.
type SyntaxError struct {
	Position manifest.Position
	error
}

// FirstLinePosition returns the position of the first line with content: a line that is neither
// blank, a comment nor a document marker. If p contains no such line, isBlank is true and
// FirstLinePosition returns the position of the first line of p.
func (p Part) FirstLinePosition() (at manifest.Position, isBlank bool) {
	line := p.linesBefore + 1
	for at := 0; at < len(p.text); line++ {
		nextLine := lineEnd(p.text, at)
		if s := bytes.TrimSpace(p.text[at:nextLine]); len(s) > 0 && s[0] != '#' && string(s) != "---" && string(s) != "..." {
			return manifest.Position{Line: uint32(line), Column: 1}, false
		}
		at = nextLine
	}
	return manifest.Position{Line: uint32(p.linesBefore + 1), Column: 1}, true
}

// firstPosition returns the position of the first line with content. See FirstLinePosition.
func (p Part) firstPosition() manifest.Position {
	at, _ := p.FirstLinePosition()
	return at
}

// yamlErrorPattern matches an error of a YAML library. Its groups are the line number and the
// message.
var yamlErrorPattern = lazyregexp.New(`(?s)^(?:error converting YAML to JSON: )?yaml: (?:unmarshal errors:\s*)?(?:line (\d+): )?(.*)$`)

// parserMessagePattern matches the error messages of the libraries' parsers. All other messages
// come from their scanners.
var parserMessagePattern = lazyregexp.New(`^did not find expected (key|',' or|node content|'-' indicator|<document start>)`)

// quotedValuePattern matches a quoted value in a library's error. newSyntaxError removes the value,
// because it may be private.
var quotedValuePattern = lazyregexp.New("(anchor) '[^']*'| `[^`]*`")

// newSyntaxError converts an error of a YAML or JSON library to a SyntaxError, which contains the
// position of the error in the file.
//
// The line number depends on the library (yaml v3 or v2) and on the kind of the error:
//
//   - For a scanner error, v3 reports the line at which the invalid construct begins, such as an
//     open quote. newSyntaxError uses this line.
//   - For a parser error, v3 reports the line at which the surrounding block begins. This line does
//     not help the user. v2 reports the line before the error, so newSyntaxError uses the error of v2
//     (lineBeforeParserError).
//   - For an error in the first line, neither library reports a number.
func (p Part) newSyntaxError(err error) *SyntaxError {
	match := yamlErrorPattern().FindStringSubmatch(err.Error())
	if match == nil {
		return &SyntaxError{p.firstPosition(), errors.New("parsing: " + wording.Clip(err.Error(), 300))}
	}
	message := quotedValuePattern().ReplaceAllString(strings.TrimSpace(match[2]), "$1")
	if strings.HasPrefix(message, "unknown anchor") {
		message += "; quote a value that begins with *"
	}
	line, _ := strconv.Atoi(match[1])
	if parserMessagePattern().MatchString(message) {
		line = p.lineBeforeParserError(line) + 1
	}
	line = max(line, 1)
	if p.hasTabIndent(line) {
		message += "; the line is indented with a tab; use spaces"
	}
	return &SyntaxError{manifest.Position{Line: uint32(p.linesBefore + line)}, errors.New("parsing YAML: " + wording.Clip(message, 300))}
}

// lineBeforeParserError returns the number of the line before a parser error, as v2 reports it. It
// returns 0 if the error is in the first line. v2 does not read the text after the document, so v2
// may report no error. In this case lineBeforeParserError returns v3Line, the line that v3 reports,
// because this line is also the line before the error.
func (p Part) lineBeforeParserError(v3Line int) int {
	_, err := yaml.YAMLToJSON(p.text)
	if err == nil {
		return v3Line
	}
	match := yamlErrorPattern().FindStringSubmatch(err.Error())
	if match == nil || !parserMessagePattern().MatchString(match[2]) {
		return v3Line
	}
	lineBefore, _ := strconv.Atoi(match[1]) // 0 if v2 reports no number; this means that the error is in the first line
	return lineBefore
}

// hasTabIndent reports whether line n of the part has a tab in its indentation.
func (p Part) hasTabIndent(n int) bool {
	at := 0
	for ; n > 1 && at < len(p.text); n-- {
		at = lineEnd(p.text, at)
	}
	line := p.text[at:lineEnd(p.text, at)]
	return bytes.ContainsRune(line[:len(line)-len(bytes.TrimLeft(line, " \t"))], '\t')
}
