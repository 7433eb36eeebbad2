"""Federation: sites that keep their rows, a server that learns how they answer, and a certificate for both."""
