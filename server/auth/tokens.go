package auth

import (
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Tokens maps the SHA-256 digest of a bearer token to its user. With digests, the tokens themselves
// are not kept in memory, and the duration of a lookup reveals nothing about other tokens.
type Tokens map[[sha256.Size]byte]User

// ParseTokens parses a token file in the format of the API server's
// --token-auth-file. Each line is
//
//	token,user,uid[,"group1,group2"]
//
// Errors contain the line number and never a token.
func ParseTokens(text []byte) (Tokens, error) {
	tokens := Tokens{}
	lines := csv.NewReader(bytes.NewReader(text))
	lines.FieldsPerRecord, lines.Comment, lines.TrimLeadingSpace = -1, '#', true
	for {
		fields, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return tokens, nil
		}
		if parseErr := (*csv.ParseError)(nil); errors.As(err, &parseErr) {
			return nil, fmt.Errorf("line %d: invalid CSV: %w", parseErr.Line, parseErr.Err)
		}
		if err != nil {
			return nil, err
		}
		line, _ := lines.FieldPos(0)
		if len(fields) < 3 || fields[0] == "" || fields[1] == "" {
			return nil, fmt.Errorf(`line %d: must be token,user,uid and optionally "group,group"`, line)
		}
		digest := sha256.Sum256([]byte(fields[0]))
		if _, isDuplicate := tokens[digest]; isDuplicate {
			return nil, fmt.Errorf("line %d: duplicate token", line)
		}
		tokens[digest] = User{Name: fields[1], Groups: append(parseGroups(fields[3:]), authenticatedGroup)}
	}
}

// parseGroups returns the group names in fields, each of which may contain several names.
func parseGroups(fields []string) []string {
	var groups []string
	for _, field := range fields {
		for g := range strings.SplitSeq(field, ",") {
			if g = strings.TrimSpace(g); g != "" {
				groups = append(groups, g)
			}
		}
	}
	return groups
}

// user returns the user of a token. ok is false if the token is unknown or "".
func (t Tokens) user(token string) (u User, ok bool) {
	u, ok = t[sha256.Sum256([]byte(token))]
	return u, ok && token != ""
}
