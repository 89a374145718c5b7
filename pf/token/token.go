package token

// Kind is the kind of a token.
type Kind uint8

// Kinds of tokens. A word is everything that pf reads as a string without quotes: names,
// addresses, ports, port ranges, keywords. A number is a word of digits.
const (
	EOF     Kind = iota
	Newline      // end of a line that is not continued
	Word
	Number
	String // in quotes; Text is what is between them; never a keyword
	Macro  // $name; Text is the name
	LeftBrace
	RightBrace
	LeftParen
	RightParen
	Comma
	Slash
	Not          // !
	Equal        // =
	NotEqual     // !=
	Less         // <
	LessEqual    // <=
	Greater      // >
	GreaterEqual // >=
	Outside      // <>
	Inside       // ><
	Arrow        // ->
	Minus        // -
	Char         // any other byte, which the grammar does not accept
	Bad          // faulty text, already reported
)

var names = [...]string{
	EOF: "end of file", Newline: "end of line", Word: "word", Number: "number", String: "string", Macro: "macro",
	LeftBrace: "{", RightBrace: "}", LeftParen: "(", RightParen: ")", Comma: ",", Slash: "/", Not: "!",
	Equal: "=", NotEqual: "!=", Less: "<", LessEqual: "<=", Greater: ">", GreaterEqual: ">=",
	Outside: "<>", Inside: "><", Arrow: "->", Minus: "-", Char: "character", Bad: "error",
}

// String returns the kind's name in messages. A sign is its own name.
func (k Kind) String() string { return names[k] }

// Token is the smallest piece of text in the grammar.
type Token struct {
	Kind Kind
	Text string
	Span
}

// IsText reports whether t can be a name or value.
func (t Token) IsText() bool { return t.Kind == Word || t.Kind == Number || t.Kind == String }
