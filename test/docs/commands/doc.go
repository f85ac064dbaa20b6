// Package commands finds the shell commands of the repository's pages, so that tests can check and
// run them. Its proofs say for each command where a test runs it, or why none does.
//
// Commands are in blocks of code (indented by four columns, or fenced) and in code spans. In a block
// with output, the lines of commands begin with "$ "; a block without such lines has commands only.
// A word in angle brackets, such as <name>, is a placeholder.
package commands
