"""The operations of the service: who may, what is asked, what is done, what is answered."""
